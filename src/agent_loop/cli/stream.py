"""The events of this program: whatever is told in it becomes AgentEvents, lawful, in order, and once.

The stream owns the assembler: runs, approvals and commands all tell it, and it gives the events to one sink.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Literal

from agent_loop.cli.outcomes import AUTH_GUIDANCE
from agent_loop.cli.projection import Projection
from agent_loop.events import LoopEvent
from agent_mux import facts
from agent_mux.assembler import Ending, OpenInteraction, StreamAssembler, StreamContext, Verdict
from agent_mux.events import AgentEvent

AGENT = "native"
DISPLAY_NAME = "amux-agent"
ApprovalMode = Literal["yolo", "prompt", "deny"]
Sink = Callable[[Sequence[AgentEvent]], None]
Clock = Callable[[], int]


def context_of(
    run_id: str,
    *,
    cwd: str = "",
    approvals: ApprovalMode = "yolo",
    interactive: bool = False,
    model: str | None = None,
    max_turns: int | None = None,
) -> StreamContext:
    """The settings of the event stream."""
    return StreamContext(
        run_id=run_id,
        agent=AGENT,
        display_name=DISPLAY_NAME,
        cwd=cwd,
        show_approvals=approvals != "yolo",
        show_requests=approvals == "prompt",
        permission_pending=approvals != "yolo",
        interactive=interactive,
        model=model,
        max_turns=max_turns or 0,
        auth_guidance=AUTH_GUIDANCE,
    )


class EventStream:
    """Takes loop events and facts; gives AgentEvents to `sink`. `now` gives milliseconds since the Unix epoch."""

    def __init__(self, context: StreamContext, sink: Sink, now: Clock) -> None:
        self._assembler = StreamAssembler(context)
        self._projection = Projection()
        self._sink = sink
        self._now = now
        self.verdict: Verdict | None = None
        """How it ended, once it has."""

    @property
    def is_over(self) -> bool:
        """The last event was told."""
        return self.verdict is not None

    @property
    def pending(self) -> tuple[OpenInteraction, ...]:
        """What somebody is asked, oldest first."""
        return self._assembler.pending

    def call_id_of(self, native_id: str) -> str:
        """The id that the stream has for a tool call."""
        return self._projection.calls.id_of(native_id)

    def show(self, event: LoopEvent) -> None:
        """Something happened in a run."""
        self.tell(*self._projection.facts_of(event))

    def tell(self, *told: facts.Fact) -> None:
        """Something is to be said besides."""
        self._assembler.now = self._now()
        self._tell_all(told)

    def note(self, message: str, level: Literal["verbose", "info", "warn"] = "info") -> None:
        """A diagnostic: a `debug` event."""
        self.tell(facts.Note(message, level))

    def end(self, ending: Ending) -> Verdict:
        """The last event. Told again, it says nothing."""
        if self.verdict is None:
            self._assembler.now = self._now()
            self.verdict = self._assembler.end(ending)
            self._flush()
        return self.verdict

    def _tell_all(self, told: Iterable[facts.Fact]) -> None:
        for fact in told:
            self._assembler.tell(fact)
        self._flush()

    def _flush(self) -> None:
        events = self._assembler.take()
        if events:
            self._sink(events)
