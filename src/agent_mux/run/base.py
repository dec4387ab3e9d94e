"""What the handles of runs have in common, wherever the run works."""

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Generator
from typing import Any

from agent_mux.errors import FieldError, ValidationError
from agent_mux.events import AgentEvent, TurnEndEvent
from agent_mux.run.interface import Boundary
from agent_mux.run.result import RunResult
from agent_mux.run.state import RunState
from agent_mux.sdk.codec import AnyAction, Delivery, Send, Steer

LARGEST_TERMINAL = 9999
"""Columns, and rows: what escape sequences can say."""


class BaseRun(ABC):
    """A run: what can be said of it by means of what only its own kind of handle knows."""

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
        """Where the run is."""

    @property
    @abstractmethod
    def is_busy(self) -> bool:
        """The agent has a prompt that it has not dealt with."""

    @abstractmethod
    def events(self, start: int = 0) -> AsyncIterator[AgentEvent]:
        """Every event from number `start`, from the first by default, however late or slow this reader is."""

    @abstractmethod
    async def result(self) -> RunResult:
        """How the run ended. Waits for it; never raises for what the agent did."""

    @abstractmethod
    async def _act(self, action: AnyAction) -> Delivery:
        """Ask the agent for something, once it was begun."""

    @abstractmethod
    async def _begun(self) -> None:
        """Wait until the agent has its first prompt, or the run is over."""

    @abstractmethod
    def _require_active(self) -> None:
        """Raises RUN_NOT_ACTIVE when the run is over."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.agent} {self.run_id} {self.state}>"

    def __aiter__(self) -> AsyncIterator[AgentEvent]:
        return self.events()

    def __await__(self) -> Generator[Any, Any, RunResult]:
        return self.result().__await__()

    async def send(self, text: str) -> Delivery:
        """Send a prompt. While a turn runs, it begins the next one; an agent that merges all it is told says so.

        Raises STDIN_NOT_AVAILABLE when the agent listens no more, RUN_NOT_ACTIVE after the end.
        """
        return await self._act(Send(text))

    async def steer(self, text: str) -> Delivery:
        """Send a message into the running turn: the agent takes it in at its next step. Without a turn it is a prompt.

        Raises `CapabilityError` when the agent takes none, else as `send`.
        """
        return await self._act(Steer(text))

    async def queue(self, text: str, when: Boundary = "next-turn") -> Delivery:
        """Send a prompt for later: for a turn of its own behind all others, or for the next boundary of this one.

        `after-response` and `after-tool` are as `steer`: agents take messages between two model calls, which is after
        the response and after the tools that it called. Raises as `send` and `steer` do.
        """
        if when != "next-turn":
            return await self.steer(text)
        return await self._act(Send(text, own_turn=True))

    async def continue_(self, prompt: str) -> Delivery:
        """Send a prompt once the running turn is over. As `send`, and never merged."""
        await self._begun()
        start = 0
        while self.is_busy:
            start = await self._turn_over(start)
        return await self.send(prompt)

    async def _turn_over(self, start: int) -> int:
        position = start
        async for event in self.events(start):
            position += 1
            if isinstance(event, TurnEndEvent):
                return position
        self._require_active()
        return position


def check_size(columns: int, rows: int) -> None:
    """Raises `ValidationError` for what is no size of a terminal."""
    if not (0 < columns <= LARGEST_TERMINAL and 0 < rows <= LARGEST_TERMINAL):
        raise ValidationError([FieldError("columns and rows", (columns, rows), f"1 to {LARGEST_TERMINAL} each")])
