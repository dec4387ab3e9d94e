"""The contexts that hooks receive, and the registry of all hooks.

A handler may set only the fields that a context declares as mutable; the last handler takes precedence. Setting another
field raises, so that a handler without the expected effect is noticed. Lists and arguments are copies.
"""

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from msgspec import Struct, field

from agent_loop.errors import ConfigurationError
from agent_loop.events import LoopStatus
from agent_loop.messages import AssistantMessage, Message, ToolMessage, UserMessage
from agent_loop.skill_files import Skill
from agent_loop.state import AgentState
from agent_loop.tools.effects import OutputStream
from agent_loop.tools.tool import Tool, ToolResult
from agent_loop.usage import Usage


class HookContext(Struct, kw_only=True):
    """The fields that all contexts have."""

    MUTABLE: ClassVar[frozenset[str]] = frozenset()
    """Fields that a handler may set, with an effect on the run."""

    session_id: str = ""
    loop_id: str = ""
    turn: int = 0
    """Number of the turn within the run, from 0."""
    depth: int = 0
    """0 for the main agent, 1 for its sub-agents, 2 for theirs."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self.MUTABLE:
            allowed = ", ".join(sorted(self.MUTABLE)) or "nothing"
            raise ConfigurationError(
                f"{type(self).__name__}.{name} cannot be changed by a hook; it may change {allowed}"
            )
        super().__setattr__(name, value)


# -- the run --------------------------------------------------------------------------------------------------------


class BeforeAgent(HookContext, kw_only=True):
    """`agent:before`: once per run, before anything else; register tools or load files."""

    MUTABLE = frozenset({"tools", "notes"})
    tools: list[Tool]
    state: AgentState
    notes: list[str] = field(default_factory=list)
    """Notices for the user about what was loaded or skipped, emitted as `noted` events."""


class BeforeLoop(HookContext, kw_only=True):
    """`loop:before`: may stop the run before it starts (`stop`)."""

    MUTABLE = frozenset({"stop"})
    messages: list[Message]
    loop_index: int
    stop: bool = False


class LoopEnded(HookContext, kw_only=True):
    """`agent:done`, `session:end`, `loop:after`: the run ended, whatever the outcome."""

    status: LoopStatus
    usage: Usage
    turns: int
    turn_range: tuple[int, int]
    """First turn of this run within the session, and the turn after its last one."""
    messages: list[Message]
    output: Any = None


class SessionStart(HookContext, kw_only=True):
    """`session:start`: the run starts; `resumed` is true for a session with a history."""

    resumed: bool = False


class SessionTurns(HookContext, kw_only=True):
    """`session:turns`: these messages were added to the history."""

    messages: list[Message]


class SystemBefore(HookContext, kw_only=True):
    """`system:before`: the run has its own system prompt. Read only; `system:transform` can change it."""

    system: str


class SteerInject(HookContext, kw_only=True):
    """`steer:inject`: a steering or follow-up message is added to the history."""

    message: UserMessage


class Abort(HookContext, kw_only=True):
    """`agent:abort`: the run is aborted."""

    reason: str


class RunFailed(HookContext, kw_only=True):
    """`error`: the run fails, because of a model call or any other exception."""

    error: Exception


class IncompleteWork(HookContext, kw_only=True):
    """`work:incomplete`: the model is about to end its work; a `prompt` makes it continue."""

    MUTABLE = frozenset({"prompt"})
    state: AgentState
    text: str
    """The answer with which the run would end."""
    reminders: int
    """Number of reminders in this run so far."""
    prompt: str | None = None


# -- a turn ---------------------------------------------------------------------------------------------------------


class TransformContext(HookContext, kw_only=True):
    """`context:transform`: the messages that will be sent; the history itself stays unchanged."""

    MUTABLE = frozenset({"messages"})
    messages: list[Message]


class TransformSystem(HookContext, kw_only=True):
    """`system:transform`: the system prompt of this model call."""

    MUTABLE = frozenset({"system"})
    system: str


class TurnBefore(HookContext, kw_only=True):
    """`turn:before`: may end the run before this turn (`stop`)."""

    MUTABLE = frozenset({"stop"})
    messages: list[Message]
    stop: bool = False


class StreamChunk(HookContext, kw_only=True):
    """`stream:text`, `stream:thinking`: a fragment of the streamed answer."""

    text: str


class StreamEnd(HookContext, kw_only=True):
    """`stream:end`: the text of the answer is complete; only for answers with text."""

    text: str


class TurnAfter(HookContext, kw_only=True):
    """`turn:after`: after each model call, also a failed one (then without usage)."""

    messages: list[AssistantMessage]
    usage: Usage
    tool_counts: Mapping[str, int]
    """Calls in this turn, by tool."""
    error: Exception | None = None


class TurnEnded(HookContext, kw_only=True):
    """`turn:end`: the turn ended, its tools included."""

    messages: list[AssistantMessage]
    tool_results: list[ToolMessage]
    usage: Usage


class UsageUpdated(HookContext, kw_only=True):
    """`usage`: the usage of a model call and the total of the run."""

    usage: Usage
    total: Usage


class OutputReady(HookContext, kw_only=True):
    """`output`: the structured answer is available."""

    value: Any


class OutputBudgetExceeded(HookContext, kw_only=True):
    """`budget:exceeded`: the tool output of this turn exceeds the budget."""

    bytes: int
    budget: int


class ToolBudgetExceeded(HookContext, kw_only=True):
    """`tool-budget:exceeded`: a tool was called more often than its budget allows."""

    tool: str
    count: int
    max_calls: int
    mode: Literal["block", "steer"]


# -- a tool call ----------------------------------------------------------------------------------------------------


class ToolHook(HookContext, kw_only=True):
    """The fields of all tool hooks. `run_tool_counts` is a snapshot of the run's calls before this one."""

    call_id: str
    name: str
    label: str = ""
    wire_name: str = ""
    """The name by which the model knows the tool: its alias, or else `name`."""
    run_tool_counts: Mapping[str, int] = field(default_factory=dict)


class ToolGate(ToolHook, kw_only=True):
    """`tool:gate`: refuse the call (`block`, `reason`), answer it (`result`), or neither. A block takes precedence.

    A handler that raises blocks the call.
    """

    MUTABLE = frozenset({"block", "reason", "result"})
    arguments: Mapping[str, Any]
    tool: Tool | None = None
    block: bool = False
    reason: str = ""
    result: ToolResult | None = None


class ToolUnknown(ToolHook, kw_only=True):
    """`tool:unknown`: no tool has this name. `result` replaces the error; `suppress_error` skips `tool:error`."""

    MUTABLE = frozenset({"result", "suppress_error"})
    arguments: Mapping[str, Any]
    result: ToolResult | None = None
    suppress_error: bool = False


class ValidationRejected(ToolHook, kw_only=True):
    """`validation:reject`: the arguments do not match the tool's parameters."""

    arguments: Mapping[str, Any]
    problem: str


class ValidationCoerced(ToolHook, kw_only=True):
    """`validation:coerce`: some arguments were converted to the expected types."""

    arguments: Mapping[str, Any]
    coercions: tuple[str, ...]
    """The conversions, one phrase for each argument."""


class ToolBefore(ToolHook, kw_only=True):
    """`tool:before`: the tool runs next. `skip` replaces the execution by a skipped result."""

    MUTABLE = frozenset({"skip"})
    arguments: Mapping[str, Any]
    coercions: tuple[str, ...] = ()
    prior_content: str | None = None
    """Content of the file that the tool is about to write, if the tool provides it."""
    skip: bool = False


class ToolUpdating(ToolHook, kw_only=True):
    """`tool:update`: a partial result; `suppress` keeps it from the stream. `tool:updated` follows its event."""

    MUTABLE = frozenset({"suppress"})
    text: str
    stream: OutputStream = "stdout"
    """The stream of the command that printed the text; always "stdout" for tools without a command."""
    suppress: bool = False


class ToolTransform(ToolHook, kw_only=True):
    """`tool:transform`: change the result before the model gets it."""

    MUTABLE = frozenset({"result"})
    result: ToolResult
    output_bytes: int
    """Size before the change: UTF-8 bytes of text, base64 characters of images."""


class ToolAfter(ToolHook, kw_only=True):
    """`tool:after`: the call ended; the result is final."""

    result: ToolResult
    output_bytes: int
    """Size after the change."""
    duration_ms: int = 0


class ToolFailed(ToolHook, kw_only=True):
    """`tool:error`: the tool raised or does not exist; `result` replaces the error."""

    MUTABLE = frozenset({"result"})
    error: Exception
    result: ToolResult | None = None


class ToolResultsAfter(HookContext, kw_only=True):
    """`tool-results:after`: calls and results were added to the history together and can be stored."""

    assistant: list[AssistantMessage]
    results: list[ToolMessage]


# -- sub-agents -----------------------------------------------------------------------------------------------------


class SpawnBefore(HookContext, kw_only=True):
    """`spawn:before`: a tool call is about to start a sub-agent; change its `prompt`, or refuse it (`block`, `reason`).

    `loop_id` and `depth` are those of the parent.
    """

    MUTABLE = frozenset({"prompt", "block", "reason"})
    call_id: str
    subagent_id: str
    """Id of the delegation, and of the session of a sub-agent that is a loop."""
    name: str
    """The kind of sub-agent."""
    prompt: str
    """The task."""
    block: bool = False
    """Whether the sub-agent is not started."""
    reason: str = ""


class SpawnEnded(HookContext, kw_only=True):
    """`spawn:complete`: a sub-agent returned a report. `spawn:error`: it has none; `error` is the reason."""

    call_id: str
    subagent_id: str
    """Id of the delegation."""
    name: str
    """The kind of sub-agent."""
    status: LoopStatus
    text: str = ""
    """The report."""
    error: str | None = None
    """Why there is no complete report."""
    child_loop_id: str | None = None
    """The loop of the sub-agent; None for other programs."""
    child_session_id: str | None = None
    """The session of that loop."""
    usage: Usage = field(default_factory=Usage)


# -- MCP servers ----------------------------------------------------------------------------------------------------


class McpBootstrapStart(HookContext, kw_only=True):
    """`mcp:bootstrap:start`: a server is started, or connected again. Servers are started in parallel."""

    server: str
    transport: str


class McpBootstrapEnd(HookContext, kw_only=True):
    """`mcp:bootstrap:end`: the server has listed its tools, or failed; it follows each `mcp:bootstrap:start`."""

    server: str
    duration_ms: int
    ok: bool
    tool_count: int = 0
    error: str | None = None
    """The reason of a failure, without secrets."""


class McpConnected(HookContext, kw_only=True):
    """`mcp:connect`: the server is connected."""

    server: str
    tools: tuple[str, ...]
    """The server's names of its tools."""


class McpFailed(HookContext, kw_only=True):
    """`mcp:error`: the server cannot be connected. Its tools are missing; other servers are not affected."""

    server: str
    error: str
    """The reason, without secrets."""


class OAuthRefresh(HookContext, kw_only=True):
    """`oauth:refresh`: a server answered 401. `headers` are used for the repeated request and all later ones.

    A handler sets for example `{"Authorization": "Bearer NEW_TOKEN"}`. Without headers the request fails.
    """

    MUTABLE = frozenset({"headers"})
    server: str
    url: str
    headers: Mapping[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        """Name the server, without the address and the headers, which may contain secrets."""
        return f"OAuthRefresh(server={self.server!r})"


class McpToolHook(ToolHook, kw_only=True):
    """The fields of all hooks of MCP tool calls."""

    server: str
    tool: str
    """The server's name for the tool."""


class McpToolGate(McpToolHook, kw_only=True):
    """`mcp:tool:gate`: as `tool:gate`, after `tool:before`, with valid arguments. A handler that raises blocks."""

    MUTABLE = frozenset({"block", "reason", "result"})
    arguments: Mapping[str, Any]
    block: bool = False
    reason: str = ""
    result: ToolResult | None = None


class McpToolBefore(McpToolHook, kw_only=True):
    """`mcp:tool:before`: the call is sent to the server next."""

    arguments: Mapping[str, Any]


class McpToolTransform(McpToolHook, kw_only=True):
    """`mcp:tool:transform`: change the server's result, before `tool:transform`."""

    MUTABLE = frozenset({"result"})
    result: ToolResult
    output_bytes: int
    """Size before the change, as in `tool:transform`."""


class McpToolAfter(McpToolHook, kw_only=True):
    """`mcp:tool:after`: the server answered."""

    result: ToolResult
    output_bytes: int
    """Size after the change."""
    duration_ms: int = 0


# -- skills ---------------------------------------------------------------------------------------------------------


class SkillsResolved(HookContext, kw_only=True):
    """`skills:resolve`: the skills of the agent were searched, which happens once."""

    skills: tuple[Skill, ...]
    """The skills, sorted by name."""


class SkillsCatalog(HookContext, kw_only=True):
    """`skills:catalog`: the catalog for the system prompt, once per agent; change it here, and it stays the same."""

    MUTABLE = frozenset({"catalog"})
    skills: tuple[Skill, ...]
    catalog: str


class SkillActivated(HookContext, kw_only=True):
    """`skills:activate`: a skill became active."""

    skill: Skill
    via: Literal["model", "explicit", "resume"]
    """By a call of the model, by `Agent.activate_skill`, or because the continued history activated it."""


class SkillDeactivated(HookContext, kw_only=True):
    """`skills:deactivate`: a skill is no longer active."""

    skill: Skill
    reason: Literal["run-end", "explicit", "reset"]
    """The run ended, `Agent.deactivate_skill` was called, or the agent began a new session."""


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
    "spawn:before": SpawnBefore,
    "spawn:complete": SpawnEnded,
    "spawn:error": SpawnEnded,
    "child:stream:text": StreamChunk,
    "child:stream:thinking": StreamChunk,
    "child:stream:end": StreamEnd,
    "child:tool:gate": ToolGate,
    "child:tool:before": ToolBefore,
    "child:tool:after": ToolAfter,
    "child:tool:error": ToolFailed,
    "child:turn:after": TurnAfter,
    "mcp:bootstrap:start": McpBootstrapStart,
    "mcp:bootstrap:end": McpBootstrapEnd,
    "mcp:connect": McpConnected,
    "mcp:error": McpFailed,
    "mcp:tool:gate": McpToolGate,
    "mcp:tool:before": McpToolBefore,
    "mcp:tool:transform": McpToolTransform,
    "mcp:tool:after": McpToolAfter,
    "oauth:refresh": OAuthRefresh,
    "skills:resolve": SkillsResolved,
    "skills:catalog": SkillsCatalog,
    "skills:activate": SkillActivated,
    "skills:deactivate": SkillDeactivated,
}
"""Every hook and the type of its context."""
