"""Prompts, one turn after the other, until nobody says anything more.

Whoever controls it calls its plain methods, from the same event loop; `hold` does the work.
"""

from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, Literal, Protocol

import anyio
from msgspec.structs import replace

from agent_loop.cli.budget import Budget
from agent_loop.cli.faults import failure_of
from agent_loop.cli.stream import EventStream
from agent_loop.events import LoopEnd, LoopEvent, LoopStart, LoopStatus
from agent_loop.messages import UserMessage
from agent_mux import facts
from agent_mux.assembler import Cause, Ending

GRACE = 3.0
"""Seconds for a run that was cancelled to end by itself."""
INTERRUPTED = "the turn was interrupted"
Delivery = Literal["applied", "queued", "merged"]


class Runs(Protocol):
    """What is needed of an `agent_loop.agent.Agent`."""

    steering: Any
    """A `MessageQueue`."""
    follow_ups: Any

    async def run(self, prompt: Any, *, behavior: Any, on_event: Callable[[LoopEvent], Awaitable[None]]) -> Any:
        """One run, and what happens in it as it happens. Raises what it ended with."""
        ...

    def steer(self, message: Any) -> None:
        """Say something to the run."""
        ...

    def follow_up(self, message: Any) -> None:
        """Say something when it would end."""
        ...

    def abort(self, reason: str = ...) -> None:
        """End the run."""
        ...


async def _at_once() -> None:
    """Readers are never behind."""


class Conversation:
    """Turns of one agent."""

    def __init__(
        self, agent: Runs, stream: EventStream, *, budget: Budget, room: Callable[[], Awaitable[None]] = _at_once
    ) -> None:
        """`room` waits until whoever reads the events has caught up."""
        self._budget = budget
        self._agent = agent
        self._stream = stream
        self._room = room
        self._prompts: deque[UserMessage] = deque()
        self._news = anyio.Event()
        self._scope: anyio.CancelScope | None = None
        self._is_running = False
        self._was_stopped = False
        """What was said to the turn that was stopped last is for the next one; else it gets one of its own."""
        self._ended_as: LoopStatus | None = None
        """How the loop of this turn ended, as far as it was told."""
        self._is_closed = False
        self._cause: Cause | None = None

    # -- for whoever controls it

    @property
    def is_running(self) -> bool:
        """A turn runs, or will at once."""
        return self._is_running or bool(self._prompts)

    def prompt(self, message: UserMessage) -> Delivery | None:
        """Begin a turn, when those before it are over. None: it is too late."""
        if self._is_closed:
            return None
        delivery: Delivery = "queued" if self.is_running else "applied"
        self._prompts.append(message)
        self._news.set()
        return delivery

    def steer(self, message: UserMessage) -> Delivery | None:
        """Tell the turn that runs; without one, it is a prompt."""
        if not self._is_running:
            return self.prompt(message)
        self._agent.steer(replace(message, origin="steering"))
        return "merged"

    def follow_up(self, message: UserMessage) -> Delivery | None:
        """Tell the turn that runs, when it would end; without one, it is a prompt."""
        if not self._is_running:
            return self.prompt(message)
        self._agent.follow_up(replace(message, origin="follow_up"))
        return "merged"

    def interrupt(self) -> bool:
        """End the turn that runs. False: none does."""
        if not self._is_running:
            return False
        self._was_stopped = True
        self._agent.abort(INTERRUPTED)
        return True

    def close(self) -> None:
        """No more prompts; those that wait are still answered."""
        self._is_closed = True
        self._news.set()

    def cancel(self) -> None:
        """End everything, with a few seconds for what runs."""
        self._cause, self._was_stopped = "abort", True
        self._prompts.clear()
        self.close()
        if self._is_running:
            self._agent.abort("the run was cancelled")
        if self._scope is not None:
            self._scope.deadline = min(self._scope.deadline, anyio.current_time() + GRACE)

    # -- the work

    async def hold(self) -> Ending:
        """Run every prompt; how it ended."""
        while True:
            if self._prompts:
                await self._turn(self._prompts.popleft())
            elif self._is_closed:
                return Ending(code=0, cause=self._cause or "close")
            else:
                await self._news.wait()
                self._news = anyio.Event()

    async def _turn(self, message: UserMessage) -> None:
        self._is_running, self._was_stopped, self._ended_as = True, False, None
        self._stream.tell(facts.TurnBegin(), *_taken(message))
        try:
            with anyio.CancelScope() as self._scope:
                # Told where it happens: what is asked meanwhile comes after what led to it.
                await self._agent.run([message], behavior=self._budget.rest(), on_event=self._hear)
        except Exception as error:  # noqa: BLE001  # the edge: whatever it is ends this turn, with a sentence
            if self._ended_as not in {"failed", "aborted"}:  # else it was told already
                self._stream.tell(facts.TurnFailed(failure_of(error)))
        finally:
            self._is_running = False
        if not self._was_stopped:
            self._prompts.extendleft(reversed([*self._agent.steering.take("all"), *self._agent.follow_ups.take("all")]))

    async def _hear(self, event: LoopEvent) -> None:
        self._stream.show(event)
        self._note(event)
        await self._room()

    def _note(self, event: LoopEvent) -> None:
        if isinstance(event, LoopStart) and self._was_stopped:
            self._agent.abort(INTERRUPTED)  # somebody was quicker than the run
        if isinstance(event, LoopEnd):
            self._budget.spend(event)
            self._ended_as = event.status
            self._is_running = False  # what remains is to store it


def _taken(message: UserMessage) -> list[facts.Fact]:
    """The pictures of a prompt."""
    return [facts.ImageTaken(block.mime_type) for block in message.content if hasattr(block, "mime_type")]
