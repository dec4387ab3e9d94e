"""The type literals by name, for iteration and exhaustiveness checks. Source: agent-events spec, section 27."""

from enum import StrEnum


class AgentEventType(StrEnum):
    """`AgentEventType.TEXT_DELTA == "text_delta"`. In the order of the spec."""

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
    TOKEN_USAGE = "token_usage"  # noqa: S105  # no password

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
