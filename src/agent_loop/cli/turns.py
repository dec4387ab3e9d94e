"""Runs the turns of one agent: queued prompts one after the other, within the limits of the whole conversation.

The controlling side calls the plain methods of `TurnRunner` from the same event loop; `TurnRunner.run` does the work.
"""

from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, Literal, Protocol

import anyio
from msgspec import Struct
from msgspec.structs import replace

from agent_loop.behavior import NO_LIMITS, Behavior, ExecutionLimits
from agent_loop.cli.outcomes import failure_of
from agent_loop.cli.stream import EventStream
from agent_loop.events import LoopEnd, LoopEvent, LoopStart, LoopStatus
from agent_loop.messages import UserMessage
from agent_loop.usage import Usage
from agent_mux.assembler import Cause, Ending
from agent_mux.sdk import facts

GRACE = 3.0
"""Seconds that a cancelled turn has to end by itself."""
INTERRUPTED = "the turn was interrupted"
Delivery = Literal["applied", "queued", "merged"]


class ConversationBudget(Struct):
    """The limits of a conversation and the usage so far. Each turn is a run with limits of its own."""

    limits: ExecutionLimits
    turn_limits: ExecutionLimits = NO_LIMITS
    """The limits of each turn where the conversation has none."""
    turns: int = 0
    usage: Usage = Usage()

    def spend(self, end: LoopEnd) -> None:
        """Add the usage of a loop that ended."""
        self.turns += end.turns
        self.usage += end.usage

    def rest(self) -> Behavior:
        """Return the limits of the next run: what is left of the conversation's, otherwise those of a turn.

        The duration applies to each run.
        """
        limits, of_turn = self.limits, self.turn_limits
        return Behavior(
            limits=ExecutionLimits(
                max_turns=_rest(limits.max_turns, self.turns, of_turn.max_turns),
                max_total_tokens=_rest(limits.max_total_tokens, self.usage.total_tokens, of_turn.max_total_tokens),
                max_duration=of_turn.max_duration if limits.max_duration is None else limits.max_duration,
                max_cost_usd=None
                if limits.max_cost_usd is None
                else max(limits.max_cost_usd - (self.usage.cost_usd or 0.0), 0.0),
            )
        )


def _rest(limit: int | None, used: int, of_turn: int | None) -> int | None:
    return of_turn if limit is None else max(limit - used, 0)


class RunnableAgent(Protocol):
    """The part of `agent_loop.agent.Agent` that a `TurnRunner` uses."""

    steering: Any
    """The `MessageQueue` of steering messages."""
    follow_ups: Any
    """The `MessageQueue` of follow-up messages."""

    async def run(self, prompt: Any, *, behavior: Any, on_event: Callable[[LoopEvent], Awaitable[None]]) -> Any:
        """Run the agent and call `on_event` with each event. Raises the error that ended the run."""
        ...

    def steer(self, message: Any) -> None:
        """Queue a message for the next step of the run."""
        ...

    def follow_up(self, message: Any) -> None:
        """Queue a message that the run processes before it ends."""
        ...

    def abort(self, reason: str = ...) -> None:
        """Abort the run and record the reason."""
        ...


async def _no_wait() -> None:
    """Return at once: there is no reader to wait for."""


class TurnRunner:
    """Runs the prompts of a conversation, one turn after the other."""

    def __init__(
        self,
        agent: RunnableAgent,
        stream: EventStream,
        *,
        budget: ConversationBudget,
        wait_for_reader: Callable[[], Awaitable[None]] = _no_wait,
    ) -> None:
        """`wait_for_reader` is awaited after each event, and returns when the reader of the events has caught up."""
        self._budget = budget
        self._agent = agent
        self._stream = stream
        self._wait_for_reader = wait_for_reader
        self._prompts: deque[UserMessage] = deque()
        self._changed = anyio.Event()
        self._scope: anyio.CancelScope | None = None
        self._is_running = False
        self._was_stopped = False
        """Whether the last turn was stopped. Messages queued for it then wait for the next turn; otherwise they become
        prompts."""
        self._reported_status: LoopStatus | None = None
        """The status in the last `LoopEnd` event of this turn, None before that event."""
        self._is_closed = False
        self._cause: Cause | None = None

    # -- control

    @property
    def is_running(self) -> bool:
        """Whether a turn runs or a prompt is waiting."""
        return self._is_running or bool(self._prompts)

    def prompt(self, message: UserMessage) -> Delivery | None:
        """Queue a prompt. Return None if the conversation is closed."""
        if self._is_closed:
            return None
        delivery: Delivery = "queued" if self.is_running else "applied"
        self._prompts.append(message)
        self._changed.set()
        return delivery

    def steer(self, message: UserMessage) -> Delivery | None:
        """Send a message to the running turn; queue it as a prompt if no turn runs."""
        if not self._is_running:
            return self.prompt(message)
        self._agent.steer(replace(message, origin="steering"))
        return "merged"

    def follow_up(self, message: UserMessage) -> Delivery | None:
        """Send a message that the running turn processes before it ends; queue it as a prompt if no turn runs."""
        if not self._is_running:
            return self.prompt(message)
        self._agent.follow_up(replace(message, origin="follow_up"))
        return "merged"

    def interrupt(self) -> bool:
        """Stop the running turn. Return False if no turn runs."""
        if not self._is_running:
            return False
        self._was_stopped = True
        self._agent.abort(INTERRUPTED)
        return True

    def close(self) -> None:
        """Accept no more prompts; `run` returns after the queued ones."""
        self._is_closed = True
        self._changed.set()

    def cancel(self) -> None:
        """Discard queued prompts and stop the running turn, which has `GRACE` seconds to end."""
        self._cause, self._was_stopped = "abort", True
        self._prompts.clear()
        self.close()
        if self._is_running:
            self._agent.abort("the run was cancelled")
        if self._scope is not None:
            self._scope.deadline = min(self._scope.deadline, anyio.current_time() + GRACE)

    # -- work

    async def run(self) -> Ending:
        """Run every prompt until the conversation is closed; return how it ended."""
        while True:
            if self._prompts:
                await self._run_turn(self._prompts.popleft())
            elif self._is_closed:
                return Ending(code=0, cause=self._cause or "close")
            else:
                await self._changed.wait()
                self._changed = anyio.Event()

    async def _run_turn(self, message: UserMessage) -> None:
        self._is_running, self._was_stopped, self._reported_status = True, False, None
        self._stream.emit(facts.TurnBegin(), *_image_facts(message))
        try:
            with anyio.CancelScope() as self._scope:
                # Events are emitted synchronously, so that an approval request follows the events that led to it.
                await self._agent.run([message], behavior=self._budget.rest(), on_event=self._on_event)
        except Exception as error:  # noqa: BLE001  # the outermost level of a turn: any error ends it with a sentence
            if self._reported_status not in {"failed", "aborted"}:  # otherwise the loop reported it already
                self._stream.emit(facts.TurnFailed(failure_of(error)))
        finally:
            self._is_running = False
        if not self._was_stopped:
            self._prompts.extendleft(reversed([*self._agent.steering.take("all"), *self._agent.follow_ups.take("all")]))

    async def _on_event(self, event: LoopEvent) -> None:
        self._stream.emit_loop_event(event)
        self._track(event)
        await self._wait_for_reader()

    def _track(self, event: LoopEvent) -> None:
        if isinstance(event, LoopStart) and self._was_stopped:
            self._agent.abort(INTERRUPTED)  # the turn was interrupted before the run started
        if isinstance(event, LoopEnd):
            self._budget.spend(event)
        if isinstance(event, LoopEnd) and event.handed_off_to is None:
            self._reported_status = event.status
            self._is_running = False  # only the session remains to be stored


def _image_facts(message: UserMessage) -> list[facts.Fact]:
    """Return a fact for each image of a prompt."""
    return [facts.ImageAccepted(block.mime_type) for block in message.content if hasattr(block, "mime_type")]
