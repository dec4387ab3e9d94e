"""State of one run that the parts of the loop share, and the environment that the run depends on."""

import random
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
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
    HandedOff,
    HookFailed,
    LoopEvent,
    LoopLimit,
    LoopStart,
    LoopStatus,
    MessageInjected,
    TurnTrigger,
)
from agent_loop.hooks.contexts import SessionTurns, SteerInject
from agent_loop.hooks.registry import Chain, Hooks
from agent_loop.loop.inputs import MessageQueue
from agent_loop.loop.limits import ExecutionTracker
from agent_loop.loop.repetition import RepetitionTracker
from agent_loop.messages import (
    AssistantMessage,
    ExtensionMessage,
    Message,
    Shown,
    ToolCall,
    ToolMessage,
    UserMessage,
    is_user_input,
)
from agent_loop.providers import Provider
from agent_loop.sessions.store import SessionStore
from agent_loop.state import AgentState
from agent_loop.tools.toolset import Toolset
from agent_loop.workspace import Workspace

STOPPED_BY_HOOK = "a hook stopped the run"
USE_SKILL = "skills_use"
"""The tool whose results are instructions of skills, which stay in the context as a whole."""
SKILL_TOOLS = frozenset({USE_SKILL, "skills_read", "skills_run_script"})
"""The tools of skills, which they may always use."""
TRANSFER_TOOL = "transfer_to_agent"
"""The tool that hands the conversation off to another agent."""
EventSink = Callable[[LoopEvent], Awaitable[None]]
AskUser = Callable[[str, tuple[str, ...]], Awaitable[str]]
Save = Callable[[], Awaitable[None]]


def is_in_event_loop() -> bool:
    """Return whether the caller runs in an event loop of asyncio or trio."""
    try:
        anyio.get_current_task()
    except RuntimeError:
        return False
    return True


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _new_id() -> str:
    return uuid4().hex


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """The environment of a run besides its model and tools: clock, sleep, randomness and ids.

    Tests replace them so that a run can be repeated exactly.
    """

    now_ms: Callable[[], int] = _now_ms
    """Milliseconds since the Unix epoch."""
    monotonic: Callable[[], float] = time.monotonic
    """Seconds of a clock that never jumps."""
    sleep: Callable[[float], Awaitable[None]] = anyio.sleep
    """Wait for this number of seconds."""
    chance: Callable[[], float] = random.random
    """Random number from 0 to 1, for jitter."""
    new_id: Callable[[], str] = _new_id
    """Return a new unique id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """The outcome of a run, from which the engine builds the last events."""

    status: LoopStatus
    text: str | None = None
    """The final answer, None if the run has none."""
    output: Any = None
    """The structured answer as plain data."""
    typed_output: Any = None
    """The structured answer as an instance of its type; equal to `output` if the schema is not a type."""
    limit: LoopLimit | None = None
    """The limit that ended the run, with the status "limited"."""
    error: Exception | None = None
    rejection: str | None = None
    handed_off_to: str | None = None
    """The agent that continues the run; the run has no answer yet."""


async def _no_save() -> None:
    """Do nothing: the run has no store."""


@dataclass(slots=True, kw_only=True)
class LoopRun:
    """One loop of a run. The agent creates it, the engine executes it. Without handoffs, a run is one loop."""

    loop_id: str
    session_id: str
    agent_id: str
    provider: Provider
    toolset: Toolset
    system: str
    behavior: Behavior
    scopes: tuple[Hooks, ...]
    """Hooks of the agent, its middleware and the run; `add_scope` appends the built-in gates."""
    history: list[Message]
    """The history of the session; the run appends to it."""
    base: int
    """Length of the history before the run."""
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
    depth: int = 0
    """Number of runs above this one: 0 for the main agent, 1 for its sub-agents."""
    store: SessionStore | None = None
    """The store of the session, for sessions of sub-agents."""
    metadata: Any = None
    deps: Any = None
    """The dependencies of tools."""
    fallbacks: list[Provider] = field(default_factory=list)
    """Models that replace `provider`, in order, when its calls fail."""
    skills: Any = None
    """The `SkillHost` of the agent, for its sub-agents; None: it has no skills."""
    overrides_system: bool = False
    """Whether the run has its own system prompt instead of the agent's."""
    acting: str = ""
    """The name of the agent that has the conversation."""
    agent_since: int = 0
    """Number of messages in the history before that agent got the conversation."""
    inherited: tuple[Message, ...] | None = None
    """What the agent sees instead of those messages; None: all of them."""
    earlier: "LoopRun | None" = None
    """The loop before this one in the same run, of the agent that handed off."""
    handoffs: int = 0
    """Number of handoffs in this run before this loop."""
    requested_handoff: HandedOff | None = None
    """The handoff that a call requests; it counts if the result of the call is no error."""
    handed_off_to: str | None = None
    """The agent that gets the conversation after this turn."""
    abort_reason: str | None = None
    turn: int = 0
    tool_counts: dict[str, int] = field(default_factory=dict)
    """Calls of this run by tool, without blocked ones."""
    call_ids: set[str] = field(default_factory=set)
    """Ids of all tool calls in the history; an id is never used twice."""
    reminders: int = 0
    fitted: int = 0
    """Number of history messages from which the last request was built."""
    tool_tokens: int = 0
    """Estimated tokens of the tool definitions in each request."""
    sent: Sequence[Message] = ()
    """The messages of the latest turn's request, as the provider got them."""
    turn_results: dict[str, ToolMessage] = field(default_factory=dict)
    """The results of this turn by call id; the next request contains them."""
    _early_events: list[LoopEvent] | None = field(default_factory=list)
    context: ContextManager = field(init=False)
    """Assigned before the run starts, because its summaries need the run."""
    persistence: ResultPersistence | None = field(init=False)
    tracker: ExecutionTracker = field(init=False)
    repetitions: RepetitionTracker = field(init=False)
    has_answered: bool = False
    """Whether an answer of the run has text."""
    _problems: list[str] = field(default_factory=list)
    hooks: Chain = field(init=False)
    gates: Chain = field(init=False)
    """The hooks without the built-in gates: those of the application, which decide about calls of sub-agents, too."""

    def __post_init__(self) -> None:
        earlier = self.earlier
        self.tracker = ExecutionTracker(
            self.behavior.limits, self.surroundings.monotonic, None if earlier is None else earlier.tracker
        )
        if earlier is not None:
            self.handoffs = earlier.handoffs + 1
            self.tool_counts.update(earlier.tool_counts)
        self.repetitions = RepetitionTracker(self.behavior.repetition)
        self.hooks = self.gates = Chain(self.scopes, self._hook_failed)
        self.call_ids.update(known_call_ids(self.history))
        self.persistence = self._new_persistence()

    def add_scope(self, hooks: Hooks) -> None:
        """Append a scope of hooks that fires after all others."""
        self.scopes = (*self.scopes, hooks)
        self.hooks = Chain(self.scopes, self._hook_failed)

    def add_policy(self, hooks: Hooks) -> None:
        """Prepend a scope of hooks, whose gates decide about calls of sub-agents, too. Call it before `add_scope`."""
        self.scopes = (hooks, *self.scopes)
        self.hooks = self.gates = Chain(self.scopes, self._hook_failed)

    def _new_persistence(self) -> ResultPersistence | None:
        behavior = self.behavior
        if behavior.persist_threshold is None or behavior.persist_dir is None:
            return None
        return ResultPersistence(
            Path(behavior.persist_dir),
            self.session_id,
            threshold=behavior.persist_threshold,
            on_problem=self._problems.append,
            exclude_tools={*behavior.persist_exclude_tools, USE_SKILL},
        )

    async def emit_problems(self) -> None:
        """Emit the failures of result persistence as `HookFailed` events."""
        while self._problems:
            error = self._problems.pop(0)
            await self.emit(HookFailed(loop_id=self.loop_id, hook="result persistence", error=error))

    def sendable(self) -> list[Message]:
        """Return the history as the agent sees it, without the messages that are never sent to a model."""
        seen = self.history if self.inherited is None else [*self.inherited, *self.history[self.agent_since :]]
        return [message for message in seen if not isinstance(message, ExtensionMessage)]

    def seen(self, call_id: str) -> tuple[Shown, ...] | None:
        """Return the content of a tool result as the latest request or this turn has it, None if neither has it."""
        message = self.turn_results.get(call_id)
        if message is None:
            results = (m for m in reversed(self.sent) if isinstance(m, ToolMessage) and m.tool_call_id == call_id)
            message = next(results, None)
        return None if message is None else message.content

    @property
    def added(self) -> list[Message]:
        """The messages that this run added to the history."""
        return self.history[self.base :]

    @property
    def has_begun(self) -> bool:
        """Whether `loop_start` was already emitted."""
        return self._early_events is None

    @property
    def hook_fields(self) -> Mapping[str, Any]:
        """The fields that every hook context has."""
        return {"session_id": self.session_id, "loop_id": self.loop_id, "turn": self.turn, "depth": self.depth}

    async def emit(self, event: LoopEvent) -> None:
        """Emit an event to the subscriber; events before `loop_start` are held back and follow it."""
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
        """Append a user message to the history, with a timestamp, and emit it."""
        stamped = message if message.timestamp else _stamped(message, self.surroundings.now_ms())
        self.history.append(stamped)
        if is_user_input(stamped):
            self.repetitions.forget()
        if stamped.origin in {"steering", "follow_up"} and self.hooks.has_handlers("steer:inject"):
            await self.hooks.fire("steer:inject", SteerInject(message=stamped, **self.hook_fields))
        await self.emit(MessageInjected(loop_id=self.loop_id, message=stamped))

    async def add(self, *messages: UserMessage) -> None:
        """Append messages to the history and store them; without messages, do nothing."""
        start = len(self.history)
        for message in messages:
            await self.inject(message)
        if messages:
            await self.store_since(start)

    async def store_since(self, start: int) -> None:
        """Fire `session:turns` with the messages from index `start`, then save the session."""
        if self.hooks.has_handlers("session:turns"):
            await self.hooks.fire("session:turns", SessionTurns(messages=self.history[start:], **self.hook_fields))
        await self.save()


def _stamped(message: UserMessage, now_ms: int) -> UserMessage:
    return UserMessage(content=message.content, origin=message.origin, timestamp=now_ms)


def output_limit(run: LoopRun) -> str:
    """Return the limit of one answer as text."""
    tokens = run.behavior.max_tokens
    return "the model" if tokens is None else f"{tokens:,} tokens"


def known_call_ids(history: list[Message]) -> set[str]:
    """Return the ids of all tool calls in the history."""
    return {
        block.id
        for message in history
        if isinstance(message, AssistantMessage)
        for block in message.content
        if isinstance(block, ToolCall)
    }
