"""What all runs have in common, local or remote: states, the `Run` protocol, and the base class of handles.

Terminal states are final. `handle.py` documents what the methods of `Run` do and raise. See docs/spec/run-api.md,
section 3.
"""

import logging
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Generator, Iterable
from inspect import isawaitable
from typing import Any, Literal, Protocol

from agent_mux._util.logs import LOGGER
from agent_mux.assembler import ExitReason
from agent_mux.errors import AgentMuxError, FieldError, ValidationError
from agent_mux.events import AgentEvent, TurnEndEvent
from agent_mux.run.handlers import call_handler, check_handler, shown
from agent_mux.run.interaction import InteractionChannel
from agent_mux.run.result import RunResult
from agent_mux.run.subscriptions import Subscriptions
from agent_mux.sdk.codec import AnyAction, Delivery, Send, Steer
from agent_mux.sdk.options import APPROVAL_MODES, ApprovalMode

RunState = Literal[
    "spawned", "running", "paused", "interrupted", "completed", "aborted", "timed-out", "crashed", "killed", "lost"
]
TERMINAL_STATES: frozenset[RunState] = frozenset({"completed", "aborted", "timed-out", "crashed", "killed", "lost"})

_MOVES: dict[RunState, frozenset[RunState]] = {
    "spawned": TERMINAL_STATES.union({"running"}),
    "running": TERMINAL_STATES.union({"paused", "interrupted"}),
    "paused": TERMINAL_STATES.union({"running"}),
    "interrupted": TERMINAL_STATES.union({"running", "paused"}),
    **dict.fromkeys(TERMINAL_STATES, frozenset()),
}

_BY_EXIT_REASON: dict[ExitReason, RunState] = {
    "aborted": "aborted",
    "timeout": "timed-out",
    "inactivity": "timed-out",
    "killed": "killed",
    "lost": "lost",
    "crashed": "crashed",
    "truncated": "crashed",
}


class StateMachine:
    """The state of one run, with its legal transitions."""

    def __init__(self) -> None:
        self.state: RunState = "spawned"
        self._callbacks: list[Callable[[RunState], None]] = []

    def on_change(self, callback: Callable[[RunState], None]) -> None:
        """Call `callback` with each new state. Raises VALIDATION_ERROR for a coroutine function."""
        self._callbacks.append(check_handler(callback, "a callback of on_state"))

    def forget_callbacks(self) -> None:
        """Release the callbacks, and what they refer to, after the last state."""
        self._callbacks.clear()

    @property
    def is_over(self) -> bool:
        """Whether the run has reached a terminal state."""
        return self.state in TERMINAL_STATES

    def allows(self, target: RunState) -> bool:
        """Return whether the transition is legal."""
        return target in _MOVES[self.state]

    def require(self, target: RunState) -> None:
        """Raise INVALID_STATE_TRANSITION if the transition is illegal."""
        if not self.allows(target):
            raise AgentMuxError("INVALID_STATE_TRANSITION", f"a run that is {self.state} cannot become {target}")

    def move(self, target: RunState) -> None:
        """Change the state. Raises INVALID_STATE_TRANSITION for an illegal transition."""
        self.require(target)
        self.state = target
        report_state(self._callbacks, target)

    def finish(self, reason: ExitReason) -> None:
        """Move to the terminal state that belongs to an exit reason."""
        self.move(state_after(reason))


def report_state(callbacks: Iterable[Callable[[RunState], None]], state: RunState) -> None:
    """Call each callback with a new state. One that raises, or returns a value, is logged, and the run continues."""
    log = logging.getLogger(LOGGER)
    for callback in callbacks:
        try:
            returned: object = call_handler(callback, state)
        except Exception:
            log.exception("a callback of on_state raised for %s; the run continues", state)
            continue
        if returned is not None and not isawaitable(returned):  # a task is right
            log.warning("a callback of on_state returned %s for %s, which has no effect", shown(returned), state)


def state_after(reason: ExitReason) -> RunState:
    """Return the terminal state that belongs to an exit reason."""
    return _BY_EXIT_REASON.get(reason, "completed")


Boundary = Literal["next-turn", "after-response", "after-tool"]


class Run(Subscriptions, Protocol):
    """One run, which can be consumed with `async for`, `on(...)` and `await`, also simultaneously."""

    @property
    def run_id(self) -> str: ...
    @property
    def agent(self) -> str: ...
    @property
    def model(self) -> str | None: ...
    @property
    def session_id(self) -> str | None: ...
    @property
    def state(self) -> RunState: ...
    @property
    def is_busy(self) -> bool: ...
    @property
    def event_count(self) -> int: ...
    @property
    def queue_position(self) -> int | None: ...
    @property
    def journal(self) -> str | None: ...
    @property
    def interaction(self) -> InteractionChannel: ...

    def _repr_html_(self) -> str: ...
    def __aiter__(self) -> AsyncIterator[AgentEvent]: ...
    def __await__(self) -> Generator[Any, Any, RunResult]: ...
    def events(self, start: int = 0) -> AsyncIterator[AgentEvent]: ...
    def on_state(self, callback: Callable[[RunState], None]) -> None: ...
    async def result(self) -> RunResult: ...

    async def send(self, text: str) -> Delivery: ...
    async def steer(self, text: str) -> Delivery: ...
    async def queue(self, text: str, when: Boundary = "next-turn") -> Delivery: ...
    async def continue_(self, prompt: str) -> Delivery: ...
    async def approve(self, *, always: bool = False) -> Delivery: ...
    async def deny(self, reason: str | None = None) -> Delivery: ...

    async def set_model(self, model: str) -> Delivery: ...
    async def set_approval_mode(self, mode: ApprovalMode) -> Delivery: ...
    async def interrupt(self) -> Delivery: ...
    async def resize(self, columns: int, rows: int) -> None: ...
    async def abort(self) -> Delivery: ...
    def kill(self) -> None: ...
    async def close(self) -> Delivery: ...
    async def pause(self) -> Delivery: ...
    async def resume(self) -> Delivery: ...


MAX_TERMINAL_SIZE = 9999
"""Limit of columns and of rows: larger numbers do not fit into escape sequences."""


class BaseRun(Subscriptions, ABC):
    """The methods of a run that do not depend on where it works."""

    @property
    @abstractmethod
    def run_id(self) -> str:
        """ULID of the run."""

    @property
    @abstractmethod
    def agent(self) -> str:
        """Registered name of the agent."""

    @property
    @abstractmethod
    def state(self) -> RunState:
        """Current state of the run."""

    @property
    @abstractmethod
    def model(self) -> str | None:
        """The model that the agent reported, else the requested one."""

    @property
    @abstractmethod
    def session_id(self) -> str | None:
        """The agent's own session id; None until it is known."""

    @property
    @abstractmethod
    def event_count(self) -> int:
        """Number of events so far."""

    @property
    @abstractmethod
    def queue_position(self) -> int | None:
        """Position of the run in the queue, from 1; None if it does not wait."""

    @property
    @abstractmethod
    def is_busy(self) -> bool:
        """Whether the agent has a prompt that it has not finished."""

    @abstractmethod
    def events(self, start: int = 0) -> AsyncIterator[AgentEvent]:
        """Return a reader of every event from number `start`, however late or slow it is read."""

    def internal_events(self, start: int = 0) -> AsyncIterator[AgentEvent]:
        """Return a reader as `events` does, for somebody who cannot answer the requests of the run."""
        return self.events(start)

    @abstractmethod
    async def result(self) -> RunResult:
        """Wait for the end of the run and return its result; never raises for what the agent did."""

    @abstractmethod
    async def _act(self, action: AnyAction) -> Delivery:
        """Send an action to the agent, after waiting until the run has begun."""

    @abstractmethod
    async def _wait_until_begun(self) -> None:
        """Wait until the agent has its first prompt, or the run is over."""

    @abstractmethod
    def _require_active(self) -> None:
        """Raise RUN_NOT_ACTIVE if the run is over."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.agent} {self.run_id} {self.state}>"

    def _repr_html_(self) -> str:
        """Return the state of the run as HTML for notebooks. Everything in it is escaped."""
        from agent_mux._util.html import notebook_box  # noqa: PLC0415  # for notebooks only

        rows = {
            "run": self.run_id,
            "model": self.model,
            "session": self.session_id,
            "events": self.event_count,
            "position in the queue": self.queue_position,
        }
        return notebook_box(f"{self.agent}: {self.state}", rows)

    def __aiter__(self) -> AsyncIterator[AgentEvent]:
        return self.events()

    def __await__(self) -> Generator[Any, Any, RunResult]:
        return self.result().__await__()

    async def send(self, text: str) -> Delivery:
        """Send a prompt. During a turn it begins the next one, unless the agent merges it (see the returned delivery).

        Raises STDIN_NOT_AVAILABLE when the agent takes no more input, RUN_NOT_ACTIVE after the end.
        """
        return await self._act(Send(text))

    async def steer(self, text: str) -> Delivery:
        """Send a message into the running turn, which the agent reads at its next step; without a turn, send a prompt.

        Raises `CapabilityError` if the agent does not support this, otherwise as `send`.
        """
        return await self._act(Steer(text))

    async def queue(self, text: str, when: Boundary = "next-turn") -> Delivery:
        """Send a prompt for later: for its own turn after all others, or for the next boundary of the running turn.

        `after-response` and `after-tool` work as `steer`: agents read messages between two model calls, which is after
        the
        response and after the tools that it called. Raises as `send` and `steer` do.
        """
        if when != "next-turn":
            return await self.steer(text)
        return await self._act(Send(text, own_turn=True))

    async def continue_(self, prompt: str) -> Delivery:
        """Send a prompt after the running turn has ended. As `send`, but never merged."""
        await self._wait_until_begun()
        start = 0
        while self.is_busy:
            start = await self._wait_for_turn_end(start)
        return await self.send(prompt)

    async def _wait_for_turn_end(self, start: int) -> int:
        position = start
        async for event in self.internal_events(start):
            position += 1
            if isinstance(event, TurnEndEvent):
                return position
        self._require_active()
        return position


def check_model(model: str) -> None:
    """Raise `ValidationError` unless this may be the name of a model."""
    if not isinstance(model, str) or not model.strip() or "\0" in model:
        raise ValidationError([FieldError("model", model, "the name of a model")])


def check_approval_mode(mode: ApprovalMode) -> None:
    """Raise `ValidationError` unless this is an approval mode."""
    if mode not in APPROVAL_MODES:
        raise ValidationError([FieldError("mode", mode, ", ".join(APPROVAL_MODES))])


def check_terminal_size(columns: int, rows: int) -> None:
    """Raise `ValidationError` unless both numbers are a possible size of a terminal."""
    if not (0 < columns <= MAX_TERMINAL_SIZE and 0 < rows <= MAX_TERMINAL_SIZE):
        raise ValidationError([FieldError("columns and rows", (columns, rows), f"1 to {MAX_TERMINAL_SIZE} each")])
