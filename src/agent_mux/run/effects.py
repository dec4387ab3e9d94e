"""The agent of a run as a process that takes input and signals: it performs the effects that the codec requests."""

from collections.abc import Callable, Iterable

from agent_mux.errors import AgentMuxError
from agent_mux.process.child import Child
from agent_mux.process.terminal import TerminalChild
from agent_mux.run.agent_process import StdinWriter
from agent_mux.run.plan import RunPlan
from agent_mux.sdk.codec import (
    Accept,
    CloseStdin,
    Delivery,
    Effect,
    Refuse,
    SignalGroup,
    TerminalSize,
    WriteStdin,
)

Reply = Delivery | Refuse | None
"""What a codec states about an action: its delivery, its refusal; None: nothing, so the default applies."""


class EffectPerformer:
    """Performs effects on the process of the current attempt. Before the first process only input can be queued."""

    def __init__(self, plan: RunPlan, on_written: Callable[[bytes], None], on_lost: Callable[[bytes], None]) -> None:
        """Create the input queue of the first attempt.

        Args:
            plan: The run.
            on_written: Called with input after it was written, with placeholders for secrets.
            on_lost: Called with input that could not be written because the agent no longer reads.
        """
        self._plan = plan
        self._on_written = on_written
        self._on_lost = on_lost
        self.child: Child | None = None
        """The process of the current attempt; None before it starts and between two attempts."""
        self.stdin = self._new_stdin_writer()
        """The input queue of the current attempt."""

    def _new_stdin_writer(self) -> StdinWriter:
        restore, is_json = self._plan.redactor.restore, self._plan.protocol.framing != "chunks"
        return StdinWriter(
            on_written=self._on_written, on_lost=self._on_lost, unmask=lambda data: restore(data, is_json=is_json)
        )

    def begin_attempt(self, plan: RunPlan) -> None:
        """Forget the process and the unsent input of the last attempt. The next one has this plan."""
        self._plan = plan
        self.child = None
        self.stdin = self._new_stdin_writer()

    def perform(self, effects: Iterable[Effect]) -> Reply:
        """Perform the effects of one record, in order. Returns what the codec states about the action, if any."""
        reply: Reply = None
        for effect in effects:
            match effect:
                case WriteStdin() | CloseStdin():
                    self.stdin.enqueue(effect)
                case SignalGroup(number):
                    if self.child is not None:
                        self.child.signal_group(number)
                case Refuse():
                    reply = effect
                case Accept(delivery):
                    reply = delivery
                case _:
                    raise TypeError(f"no such effect: {effect!r}")
        return reply

    @property
    def takes_input(self) -> bool:
        """Whether the agent still takes input. One that reads its prompt only once takes none, but is not asked."""
        return not (self.stdin.is_closed and self._plan.protocol.two_way)

    def signal_processes(self, number: int) -> None:
        """Send a signal to all processes of the run."""
        if self.child is not None:
            self.child.signal_all(number)

    def resize(self, size: TerminalSize) -> None:
        """Set the size of the agent's terminal. Raises PTY_NOT_AVAILABLE if it has none."""
        if not isinstance(self.child, TerminalChild):
            raise AgentMuxError("PTY_NOT_AVAILABLE", f"{self._plan.adapter.agent} does not run at a terminal")
        self.child.resize(size)
