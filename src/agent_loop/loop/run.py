"""Clock, chance, sleep and ids: handed in, so that a run can be played again exactly."""
# DOC: """How a run ends."""
# DOC: """All that one run of the loop knows: what its parts share."""

import random
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

import anyio

from agent_loop.behavior import Behavior
from agent_loop.context.manager import ContextManager
from agent_loop.context.persistence import ResultPersistence
from agent_loop.errors import error_text
from agent_loop.events import (
    ContinuationKind,
    HookFailed,
    LoopEvent,
    LoopStart,
    LoopStatus,
    MessageInjected,
    TurnTrigger,
)
from agent_loop.hooks.contexts import SessionTurns, SteerInject
from agent_loop.hooks.registry import Chain, Hooks
from agent_loop.loop.inputs import MessageQueue
from agent_loop.loop.limits import ExecutionTracker
from agent_loop.messages import AssistantMessage, ExtensionMessage, Message, ToolCall, UserMessage
from agent_loop.providers import Provider
from agent_loop.state import AgentState
from agent_loop.tools.toolset import Toolset
from agent_loop.workspace import Workspace


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _new_id() -> str:
    return uuid4().hex


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """Everything about the world that a run depends on, besides its model and its tools."""

    now_ms: Callable[[], int] = _now_ms
    """Milliseconds since the Unix epoch."""
    monotonic: Callable[[], float] = time.monotonic
    """Seconds that never jump."""
    sleep: Callable[[float], Awaitable[None]] = anyio.sleep
    """Wait so many seconds."""
    chance: Callable[[], float] = random.random
    """0 to 1, for jitter."""
    new_id: Callable[[], str] = _new_id
    """Never the same twice."""


STOPPED_BY_HOOK = "a hook stopped the run"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How the run ended."""

    status: LoopStatus
    text: str | None = None
    """None: there is no final answer."""
    output: Any = None
    error: Exception | None = None
    rejection: str | None = None


EventSink = Callable[[LoopEvent], Awaitable[None]]
AskUser = Callable[[str, tuple[str, ...]], Awaitable[str]]
Save = Callable[[], Awaitable[None]]


async def _no_save() -> None:
    """There is no store."""


@dataclass(slots=True, kw_only=True)
class Run:
    """One run. Made by the agent, used by the engine, gone with it."""

    loop_id: str
    session_id: str
    agent_id: str
    provider: Provider
    toolset: Toolset
    system: str
    behavior: Behavior
    scopes: tuple[Hooks, ...]
    """Agent, run; the framework's own are put behind them."""
    history: list[Message]
    """Of the session; the run adds to it."""
    base: int
    """How much of it was there before."""
    state: AgentState
    workspace: Workspace | None
    steering: MessageQueue
    follow_ups: MessageQueue
    surroundings: Surroundings
    sink: EventSink
    ask: AskUser | None = None
    save: Save = _no_save
    parent_loop_id: str | None = None
    kind: ContinuationKind | None = None
    trigger: TurnTrigger = "user"
    loop_index: int = 0
    prior_turns: int = 0
    metadata: Any = None
    overrides_system: bool = False
    """The run has a system prompt of its own."""
    abort_reason: str | None = None
    turn: int = 0
    tool_counts: dict[str, int] = field(default_factory=dict)
    """Calls of this run by tool, blocked ones not counted."""
    call_ids: set[str] = field(default_factory=set)
    """Of the whole history: an id is never used twice."""
    reminders: int = 0
    fitted: int = 0
    """How long the history was that the last request was made of."""
    tool_tokens: int = 0
    """What the definitions of the tools take in each request, estimated."""
    _early_events: list[LoopEvent] | None = field(default_factory=list)
    context: ContextManager = field(init=False)
    """Set before the run begins: it needs the run to summarize with."""
    persistence: ResultPersistence | None = field(init=False)
    tracker: ExecutionTracker = field(init=False)
    _problems: list[str] = field(default_factory=list)
    hooks: Chain = field(init=False)

    def __post_init__(self) -> None:
        self.tracker = ExecutionTracker(self.behavior.limits, self.surroundings.monotonic)
        self.hooks = Chain(self.scopes, self._hook_failed)
        self.call_ids.update(known_call_ids(self.history))
        self.persistence = self._new_persistence()

    def add_scope(self, hooks: Hooks) -> None:
        """Behind all others."""
        self.scopes = (*self.scopes, hooks)
        self.hooks = Chain(self.scopes, self._hook_failed)

    def _new_persistence(self) -> ResultPersistence | None:
        behavior = self.behavior
        if behavior.persist_threshold is None or behavior.persist_dir is None:
            return None
        return ResultPersistence(
            Path(behavior.persist_dir),
            self.session_id,
            threshold=behavior.persist_threshold,
            on_problem=self._problems.append,
            exclude_tools=behavior.persist_exclude_tools,
        )

    async def emit_problems(self) -> None:
        """What went wrong beside the run."""
        while self._problems:
            error = self._problems.pop(0)
            await self.emit(HookFailed(loop_id=self.loop_id, hook="result persistence", error=error))

    def sendable(self) -> list[Message]:
        """The history without what no model sees."""
        return [message for message in self.history if not isinstance(message, ExtensionMessage)]

    @property
    def added(self) -> list[Message]:
        """What this run put into the history."""
        return self.history[self.base :]

    @property
    def has_begun(self) -> bool:
        """`loop_start` was told."""
        return self._early_events is None

    @property
    def hook_fields(self) -> Mapping[str, Any]:
        """What every hook is told."""
        return {"session_id": self.session_id, "loop_id": self.loop_id, "turn": self.turn}

    async def emit(self, event: LoopEvent) -> None:
        """To whoever watches. What is told before the beginning comes right after it."""
        if isinstance(event, LoopStart):
            early, self._early_events = self._early_events or [], None
            for each in (event, *early):
                await self.sink(each)
        elif self._early_events is not None:
            self._early_events.append(event)
        else:
            await self.sink(event)

    async def _hook_failed(self, hook: str, error: Exception) -> None:
        await self.emit(
            HookFailed(loop_id=self.loop_id, hook=hook, error=f"{type(error).__name__}: {error_text(error)}")
        )

    async def inject(self, message: UserMessage) -> None:
        """A message of a person, or of the loop itself, goes into the history."""
        stamped = message if message.timestamp else _stamped(message, self.surroundings.now_ms())
        self.history.append(stamped)
        if stamped.origin in {"steering", "follow_up"} and self.hooks.has_handlers("steer:inject"):
            await self.hooks.fire("steer:inject", SteerInject(message=stamped, **self.hook_fields))
        await self.emit(MessageInjected(loop_id=self.loop_id, message=stamped))

    async def add(self, *messages: UserMessage) -> None:
        """These go into the history, and are kept; nothing happens where there are none."""
        start = len(self.history)
        for message in messages:
            await self.inject(message)
        if messages:
            await self.store_since(start)

    async def store_since(self, start: int) -> None:
        """What was added since then is complete: hooks hear of it, and it is stored."""
        if self.hooks.has_handlers("session:turns"):
            await self.hooks.fire("session:turns", SessionTurns(messages=self.history[start:], **self.hook_fields))
        await self.save()


def _stamped(message: UserMessage, now_ms: int) -> UserMessage:
    return UserMessage(content=message.content, origin=message.origin, timestamp=now_ms)


def known_call_ids(history: list[Message]) -> set[str]:
    """The ids of all tool calls in it."""
    return {
        block.id
        for message in history
        if isinstance(message, AssistantMessage)
        for block in message.content
        if isinstance(block, ToolCall)
    }
