"""What each hook is given. Source: zidane, "Hook Firing Order"; phi-core, "Event Hook Ordering"; hooks seed, section 4.

A context may be changed only in the fields that it declares as mutable; the last writer wins. Setting any other field
raises, so that a hook which hopes for an effect that it cannot have finds out. Lists and arguments are copies.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from agent_loop.errors import ConfigurationError
from agent_loop.events import LoopStatus
from agent_loop.messages import AssistantMessage, Message, ToolMessage, UserMessage
from agent_loop.state import AgentState
from agent_loop.tools.effects import OutputStream
from agent_loop.tools.tool import Tool, ToolResult
from agent_loop.usage import Usage


@dataclass(kw_only=True)
class HookContext:
    """What all hooks know."""

    MUTABLE: ClassVar[frozenset[str]] = frozenset()
    """Fields that a handler may set, and that have an effect."""

    session_id: str = ""
    loop_id: str = ""
    turn: int = 0
    """From 0, within the run."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "_sealed", True)

    def __setattr__(self, name: str, value: Any) -> None:
        if getattr(self, "_sealed", False) and name not in self.MUTABLE:
            allowed = ", ".join(sorted(self.MUTABLE)) or "nothing"
            raise ConfigurationError(
                f"{type(self).__name__}.{name} cannot be changed by a hook; it may change {allowed}"
            )
        object.__setattr__(self, name, value)


# -- the run --------------------------------------------------------------------------------------------------------


@dataclass(kw_only=True)
class BeforeAgent(HookContext):
    """`agent:before`: once per run, before anything: register tools, load files. Source: hooks seed, phase 1."""

    MUTABLE = frozenset({"tools", "notes"})
    tools: list[Tool]
    state: AgentState
    notes: list[str] = field(default_factory=list)
    """What a person should know of what was loaded, or was not: told as `noted`."""


@dataclass(kw_only=True)
class BeforeLoop(HookContext):
    """`loop:before`: may stop the run before it begins (`stop`). Source: phi-core, `before_loop`."""

    MUTABLE = frozenset({"stop"})
    messages: list[Message]
    loop_index: int
    stop: bool = False


@dataclass(kw_only=True)
class LoopEnded(HookContext):
    """`agent:done`, `session:end`, `loop:after`: the run is over, on whatever path. Source: zidane; phi-core."""

    status: LoopStatus
    usage: Usage
    turns: int
    turn_range: tuple[int, int]
    """First and last turn of this run within the session (half open)."""
    messages: list[Message]
    output: Any = None


@dataclass(kw_only=True)
class SessionStart(HookContext):
    """`session:start`: the run begins."""

    resumed: bool = False


@dataclass(kw_only=True)
class SessionTurns(HookContext):
    """`session:turns`: these messages were added to the history."""

    messages: list[Message]


@dataclass(kw_only=True)
class SystemBefore(HookContext):
    """`system:before`: the run has a system prompt of its own. Observational; `system:transform` changes it."""

    system: str


@dataclass(kw_only=True)
class SteerInject(HookContext):
    """`steer:inject`: a steering or follow-up message goes into the history."""

    message: UserMessage


@dataclass(kw_only=True)
class Abort(HookContext):
    """`agent:abort`: somebody called `abort()`."""

    reason: str


@dataclass(kw_only=True)
class RunFailed(HookContext):
    """`error`: the run fails, because of a model call or anything else. Source: phi-core, `on_error`."""

    error: Exception


@dataclass(kw_only=True)
class IncompleteWork(HookContext):
    """`work:incomplete`: the model is about to end; a `prompt` makes it go on. Source: loop spec, section 7."""

    MUTABLE = frozenset({"prompt"})
    state: AgentState
    text: str
    """What it would end with."""
    reminders: int
    """Times it was reminded in this run already."""
    prompt: str | None = None


# -- a turn ---------------------------------------------------------------------------------------------------------


@dataclass(kw_only=True)
class TransformContext(HookContext):
    """`context:transform`: the messages that will be sent; the history itself stays. Source: zidane; hooks seed."""

    MUTABLE = frozenset({"messages"})
    messages: list[Message]


@dataclass(kw_only=True)
class TransformSystem(HookContext):
    """`system:transform`: the system prompt of this call."""

    MUTABLE = frozenset({"system"})
    system: str


@dataclass(kw_only=True)
class TurnBefore(HookContext):
    """`turn:before`: may end the run here (`stop`). Source: zidane; phi-core, `before_turn`."""

    MUTABLE = frozenset({"stop"})
    messages: list[Message]
    stop: bool = False


@dataclass(kw_only=True)
class StreamChunk(HookContext):
    """`stream:text`, `stream:thinking`: a fragment."""

    text: str


@dataclass(kw_only=True)
class StreamEnd(HookContext):
    """`stream:end`: the text is complete; only where there is some."""

    text: str


@dataclass(kw_only=True)
class TurnAfter(HookContext):
    """`turn:after`: always, also after an error (with no usage then)."""

    messages: list[AssistantMessage]
    usage: Usage
    tool_counts: Mapping[str, int]
    """Calls in this turn, by tool."""
    error: Exception | None = None


@dataclass(kw_only=True)
class TurnEnded(HookContext):
    """`turn:end`: the turn is over, its tools included. Source: phi-core, `after_turn`."""

    messages: list[AssistantMessage]
    tool_results: list[ToolMessage]
    usage: Usage


@dataclass(kw_only=True)
class UsageUpdated(HookContext):
    """`usage`: running totals."""

    usage: Usage
    total: Usage


@dataclass(kw_only=True)
class OutputReady(HookContext):
    """`output`: the structured answer."""

    value: Any


@dataclass(kw_only=True)
class OutputBudgetExceeded(HookContext):
    """`budget:exceeded`: more bytes of tool output in this turn than the budget allows."""

    bytes: int
    budget: int


@dataclass(kw_only=True)
class ToolBudgetExceeded(HookContext):
    """`tool-budget:exceeded`: a tool was called more often than its budget allows."""

    tool: str
    count: int
    max_calls: int
    mode: Literal["block", "steer"]


# -- a tool call ----------------------------------------------------------------------------------------------------


@dataclass(kw_only=True)
class ToolHook(HookContext):
    """What the hooks of a tool call know. `run_tool_counts` is a snapshot from before the call, of this run."""

    call_id: str
    name: str
    label: str = ""
    run_tool_counts: Mapping[str, int] = field(default_factory=dict)


@dataclass(kw_only=True)
class ToolGate(ToolHook):
    """`tool:gate`: refuse (`block`, `reason`), answer in its place (`result`), or neither. A block beats a result.

    A handler that raises blocks the call.
    """

    MUTABLE = frozenset({"block", "reason", "result"})
    arguments: Mapping[str, Any]
    tool: Tool | None = None
    block: bool = False
    reason: str = ""
    result: ToolResult | None = None


@dataclass(kw_only=True)
class ToolUnknown(ToolHook):
    """`tool:unknown`: there is no such tool. `result` is what the model gets; `suppress_error` skips `tool:error`."""

    MUTABLE = frozenset({"result", "suppress_error"})
    arguments: Mapping[str, Any]
    result: ToolResult | None = None
    suppress_error: bool = False


@dataclass(kw_only=True)
class ValidationRejected(ToolHook):
    """`validation:reject`: the arguments are not what the tool takes."""

    arguments: Mapping[str, Any]
    problem: str


@dataclass(kw_only=True)
class ValidationCoerced(ToolHook):
    """`validation:coerce`: some arguments were made to fit."""

    arguments: Mapping[str, Any]
    coercions: tuple[str, ...]
    """What was done, one phrase for each argument."""


@dataclass(kw_only=True)
class ToolBefore(ToolHook):
    """`tool:before`: the tool runs next. `skip` leaves it out, with a skipped result. Source: phi-core."""

    MUTABLE = frozenset({"skip"})
    arguments: Mapping[str, Any]
    coercions: tuple[str, ...] = ()
    prior_content: str | None = None
    """What a file held that is about to be written, for the write tool."""
    skip: bool = False


@dataclass(kw_only=True)
class ToolUpdating(ToolHook):
    """`tool:update`: a partial result; `suppress` keeps it from the stream. `tool:updated` comes after it was told."""

    MUTABLE = frozenset({"suppress"})
    text: str
    stream: OutputStream = "stdout"
    """The one of the command that printed it; of other tools it says nothing."""
    suppress: bool = False


@dataclass(kw_only=True)
class ToolTransform(ToolHook):
    """`tool:transform`: change the result."""

    MUTABLE = frozenset({"result"})
    result: ToolResult
    output_bytes: int
    """Before the change: UTF-8 bytes of text, base64 characters of images."""


@dataclass(kw_only=True)
class ToolAfter(ToolHook):
    """`tool:after`: the call is over."""

    result: ToolResult
    output_bytes: int
    """After the change."""
    duration_ms: int = 0


@dataclass(kw_only=True)
class ToolFailed(ToolHook):
    """`tool:error`: the tool raised, or does not exist; `result` takes the place of the error."""

    MUTABLE = frozenset({"result"})
    error: Exception
    result: ToolResult | None = None


@dataclass(kw_only=True)
class ToolResultsAfter(HookContext):
    """`tool-results:after`: calls and results are in the history as a pair: the moment to store them."""

    assistant: list[AssistantMessage]
    results: list[ToolMessage]


HOOKS: Mapping[str, type[HookContext]] = {
    "agent:before": BeforeAgent,
    "session:start": SessionStart,
    "session:turns": SessionTurns,
    "session:end": LoopEnded,
    "system:before": SystemBefore,
    "loop:before": BeforeLoop,
    "loop:after": LoopEnded,
    "agent:abort": Abort,
    "agent:done": LoopEnded,
    "steer:inject": SteerInject,
    "work:incomplete": IncompleteWork,
    "error": RunFailed,
    "context:transform": TransformContext,
    "system:transform": TransformSystem,
    "turn:before": TurnBefore,
    "turn:after": TurnAfter,
    "turn:end": TurnEnded,
    "stream:text": StreamChunk,
    "stream:thinking": StreamChunk,
    "stream:end": StreamEnd,
    "usage": UsageUpdated,
    "output": OutputReady,
    "budget:exceeded": OutputBudgetExceeded,
    "tool-budget:exceeded": ToolBudgetExceeded,
    "tool:gate": ToolGate,
    "tool:unknown": ToolUnknown,
    "validation:reject": ValidationRejected,
    "validation:coerce": ValidationCoerced,
    "tool:before": ToolBefore,
    "tool:update": ToolUpdating,
    "tool:updated": ToolUpdating,
    "tool:transform": ToolTransform,
    "tool:after": ToolAfter,
    "tool:error": ToolFailed,
    "tool-results:after": ToolResultsAfter,
}
"""Every hook there is, and what it is given."""
