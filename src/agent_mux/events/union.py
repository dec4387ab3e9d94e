"""The union of all events, and their type literals. See docs/spec/events.md, sections 4 and 27."""

from enum import StrEnum
from typing import Annotated, Literal, get_args

from agent_mux._util.pydantic_support import DiscriminatedEvents
from agent_mux.events.base import CostEvent, TokenUsageEvent
from agent_mux.events.content import (
    ImageInputAckEvent,
    ImageOutputEvent,
    MessageStartEvent,
    MessageStopEvent,
    TextDeltaEvent,
    ThinkingDeltaEvent,
    ThinkingStartEvent,
    ThinkingStopEvent,
)
from agent_mux.events.run import (
    AbortedEvent,
    ApprovalDeniedEvent,
    ApprovalGrantedEvent,
    ApprovalRequestEvent,
    AuthErrorEvent,
    ContextCompactedEvent,
    ContextExceededEvent,
    ContextLimitWarningEvent,
    CrashEvent,
    DebugEvent,
    ErrorEvent,
    InputRequiredEvent,
    InterruptedEvent,
    LogEvent,
    PausedEvent,
    RateLimitedEvent,
    RateLimitErrorEvent,
    ResumedEvent,
    RetryEvent,
    StreamFallbackEvent,
    TimeoutEvent,
    TurnLimitEvent,
)
from agent_mux.events.session import (
    AgentdocReadEvent,
    PluginErrorEvent,
    PluginInvokedEvent,
    PluginLoadedEvent,
    SessionCheckpointEvent,
    SessionEndEvent,
    SessionForkEvent,
    SessionResumeEvent,
    SessionStartEvent,
    SkillInvokedEvent,
    SkillLoadedEvent,
    StepEndEvent,
    StepStartEvent,
    TurnEndEvent,
    TurnStartEvent,
)
from agent_mux.events.tools import (
    FileCreateEvent,
    FileDeleteEvent,
    FilePatchEvent,
    FileReadEvent,
    FileWriteEvent,
    McpToolCallStartEvent,
    McpToolErrorEvent,
    McpToolResultEvent,
    ShellExitEvent,
    ShellStartEvent,
    ShellStderrDeltaEvent,
    ShellStdoutDeltaEvent,
    SubagentErrorEvent,
    SubagentResultEvent,
    SubagentSpawnEvent,
    ToolCallReadyEvent,
    ToolCallStartEvent,
    ToolErrorEvent,
    ToolInputDeltaEvent,
    ToolResultEvent,
)


class AgentEventType(StrEnum):
    """All type literals, in the order of the specification: `AgentEventType.TEXT_DELTA == "text_delta"`."""

    SESSION_START = "session_start"
    SESSION_RESUME = "session_resume"
    SESSION_FORK = "session_fork"
    SESSION_CHECKPOINT = "session_checkpoint"
    SESSION_END = "session_end"

    TURN_START = "turn_start"
    TURN_END = "turn_end"
    STEP_START = "step_start"
    STEP_END = "step_end"

    MESSAGE_START = "message_start"
    TEXT_DELTA = "text_delta"
    MESSAGE_STOP = "message_stop"

    THINKING_START = "thinking_start"
    THINKING_DELTA = "thinking_delta"
    THINKING_STOP = "thinking_stop"

    TOOL_CALL_START = "tool_call_start"
    TOOL_INPUT_DELTA = "tool_input_delta"
    TOOL_CALL_READY = "tool_call_ready"
    TOOL_RESULT = "tool_result"
    TOOL_ERROR = "tool_error"

    FILE_READ = "file_read"
    FILE_WRITE = "file_write"
    FILE_CREATE = "file_create"
    FILE_DELETE = "file_delete"
    FILE_PATCH = "file_patch"

    SHELL_START = "shell_start"
    SHELL_STDOUT_DELTA = "shell_stdout_delta"
    SHELL_STDERR_DELTA = "shell_stderr_delta"
    SHELL_EXIT = "shell_exit"

    MCP_TOOL_CALL_START = "mcp_tool_call_start"
    MCP_TOOL_RESULT = "mcp_tool_result"
    MCP_TOOL_ERROR = "mcp_tool_error"

    SUBAGENT_SPAWN = "subagent_spawn"
    SUBAGENT_RESULT = "subagent_result"
    SUBAGENT_ERROR = "subagent_error"

    PLUGIN_LOADED = "plugin_loaded"
    PLUGIN_INVOKED = "plugin_invoked"
    PLUGIN_ERROR = "plugin_error"

    SKILL_LOADED = "skill_loaded"
    SKILL_INVOKED = "skill_invoked"
    AGENTDOC_READ = "agentdoc_read"

    IMAGE_OUTPUT = "image_output"
    IMAGE_INPUT_ACK = "image_input_ack"

    COST = "cost"
    TOKEN_USAGE = "token_usage"  # noqa: S105  # not a password

    INPUT_REQUIRED = "input_required"
    APPROVAL_REQUEST = "approval_request"
    APPROVAL_GRANTED = "approval_granted"
    APPROVAL_DENIED = "approval_denied"

    RATE_LIMITED = "rate_limited"
    CONTEXT_LIMIT_WARNING = "context_limit_warning"
    CONTEXT_COMPACTED = "context_compacted"
    RETRY = "retry"

    INTERRUPTED = "interrupted"
    ABORTED = "aborted"
    PAUSED = "paused"
    RESUMED = "resumed"
    TIMEOUT = "timeout"
    TURN_LIMIT = "turn_limit"
    STREAM_FALLBACK = "stream_fallback"

    AUTH_ERROR = "auth_error"
    RATE_LIMIT_ERROR = "rate_limit_error"
    CONTEXT_EXCEEDED = "context_exceeded"
    CRASH = "crash"
    ERROR = "error"

    DEBUG = "debug"
    LOG = "log"


EventName = Literal[
    "session_start",
    "session_resume",
    "session_fork",
    "session_checkpoint",
    "session_end",
    "turn_start",
    "turn_end",
    "step_start",
    "step_end",
    "message_start",
    "text_delta",
    "message_stop",
    "thinking_start",
    "thinking_delta",
    "thinking_stop",
    "tool_call_start",
    "tool_input_delta",
    "tool_call_ready",
    "tool_result",
    "tool_error",
    "file_read",
    "file_write",
    "file_create",
    "file_delete",
    "file_patch",
    "shell_start",
    "shell_stdout_delta",
    "shell_stderr_delta",
    "shell_exit",
    "mcp_tool_call_start",
    "mcp_tool_result",
    "mcp_tool_error",
    "subagent_spawn",
    "subagent_result",
    "subagent_error",
    "plugin_loaded",
    "plugin_invoked",
    "plugin_error",
    "skill_loaded",
    "skill_invoked",
    "agentdoc_read",
    "image_output",
    "image_input_ack",
    "cost",
    "token_usage",
    "input_required",
    "approval_request",
    "approval_granted",
    "approval_denied",
    "rate_limited",
    "context_limit_warning",
    "context_compacted",
    "retry",
    "interrupted",
    "aborted",
    "paused",
    "resumed",
    "timeout",
    "turn_limit",
    "stream_fallback",
    "auth_error",
    "rate_limit_error",
    "context_exceeded",
    "crash",
    "error",
    "debug",
    "log",
]
"""The type literal of an event, for type checkers: a misspelled name is an error before the program runs."""


_AnyEvent = (
    SessionStartEvent
    | SessionResumeEvent
    | SessionForkEvent
    | SessionCheckpointEvent
    | SessionEndEvent
    | TurnStartEvent
    | TurnEndEvent
    | StepStartEvent
    | StepEndEvent
    | MessageStartEvent
    | TextDeltaEvent
    | MessageStopEvent
    | ThinkingStartEvent
    | ThinkingDeltaEvent
    | ThinkingStopEvent
    | ToolCallStartEvent
    | ToolInputDeltaEvent
    | ToolCallReadyEvent
    | ToolResultEvent
    | ToolErrorEvent
    | FileReadEvent
    | FileWriteEvent
    | FileCreateEvent
    | FileDeleteEvent
    | FilePatchEvent
    | ShellStartEvent
    | ShellStdoutDeltaEvent
    | ShellStderrDeltaEvent
    | ShellExitEvent
    | McpToolCallStartEvent
    | McpToolResultEvent
    | McpToolErrorEvent
    | SubagentSpawnEvent
    | SubagentResultEvent
    | SubagentErrorEvent
    | PluginLoadedEvent
    | PluginInvokedEvent
    | PluginErrorEvent
    | SkillLoadedEvent
    | SkillInvokedEvent
    | AgentdocReadEvent
    | ImageOutputEvent
    | ImageInputAckEvent
    | CostEvent
    | TokenUsageEvent
    | InputRequiredEvent
    | ApprovalRequestEvent
    | ApprovalGrantedEvent
    | ApprovalDeniedEvent
    | RateLimitedEvent
    | ContextLimitWarningEvent
    | ContextCompactedEvent
    | RetryEvent
    | InterruptedEvent
    | AbortedEvent
    | PausedEvent
    | ResumedEvent
    | TimeoutEvent
    | TurnLimitEvent
    | StreamFallbackEvent
    | AuthErrorEvent
    | RateLimitErrorEvent
    | ContextExceededEvent
    | CrashEvent
    | ErrorEvent
    | DebugEvent
    | LogEvent
)
AgentEvent = Annotated[_AnyEvent, DiscriminatedEvents()]
"""Any event. `event.type` is the tag. For `isinstance`, use `BaseEvent`."""

ALL_EVENTS: tuple[type[AgentEvent], ...] = get_args(_AnyEvent)
"""The event classes in the order of the specification."""
