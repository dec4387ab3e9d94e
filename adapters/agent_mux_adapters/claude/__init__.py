"""The adapter of Claude Code: stream-json, one-shot and two-way."""

from typing import TYPE_CHECKING, Any

from agent_mux.sdk.adapter import Adapter, AgentCapabilities, InstallMethod, NativeProtocol
from agent_mux.sdk.facts import Capability
from agent_mux_adapters._dialects.stream_json.codec import ONE_SHOT, TWO_WAY
from agent_mux_adapters._dialects.tolerant import mapping, text
from agent_mux_adapters._models import offered
from agent_mux_adapters.claude.argv import OWNED_FLAGS, THINKING_KEYS, build_context, build_spawn_args
from agent_mux_adapters.claude.codec import ClaudeCodec
from agent_mux_adapters.claude.hook_events import TYPES as HOOK_EVENTS

if TYPE_CHECKING:
    from agent_mux.sdk.installation import AgentInstallation
    from agent_mux.sdk.sessions import SessionStore

CAPABILITIES = AgentCapabilities(
    agent="claude",
    can_resume=True,
    can_fork=True,
    supports_multi_turn=True,
    session_persistence="file",
    text_streaming=True,
    tool_call_streaming=True,
    thinking_streaming=True,
    mcp=True,
    parallel_tool_calls=True,
    requires_tool_approval=True,
    approval_modes=("yolo", "prompt", "deny", "plan"),
    thinking=True,
    thinking_effort_levels=("low", "medium", "high", "max"),
    thinking_budget_tokens=True,
    thinking_override=THINKING_KEYS,
    fallback_model=True,
    allowed_tools=True,
    disallowed_tools=True,
    add_dirs=True,
    extra_args=True,
    native_options=True,
    set_model=True,
    set_approval_mode=("plan", "prompt", "deny", "yolo"),
    json_mode=True,
    structured_output=True,
    skills=True,
    agents_md=True,
    subagent_dispatch=True,
    parallel_execution=True,
    interactive_mode=True,
    stdin_injection=True,
    image_input=True,
    file_attachments=True,
    plugins=True,
    auth_methods=("cloud", "auth_token", "api_key", "oauth"),
    auth_files=("~/.claude/.credentials.json",),
    emits=frozenset({
        "approval_denied", "approval_granted", "approval_request", "auth_error", "context_compacted",
        "context_exceeded", "cost", "crash", "debug", "error", "file_create", "file_patch", "file_read", "file_write",
        "image_output", "input_required", "interrupted", "log", "mcp_tool_call_start", "mcp_tool_error",
        "mcp_tool_result", "message_start", "message_stop", "plugin_loaded", "rate_limit_error", "rate_limited",
        "retry", "session_end", "session_start", "shell_exit", "shell_start", "shell_stdout_delta", "skill_invoked",
        "skill_loaded", "step_end", "step_start", "subagent_error", "subagent_result", "subagent_spawn", "text_delta",
        "thinking_delta", "thinking_start", "thinking_stop", "token_usage", "tool_call_ready", "tool_call_start",
        "tool_error", "tool_input_delta", "tool_result", "turn_end", "turn_limit", "turn_start",
    }),
)  # fmt: skip

CONTROL_LINES = frozenset({"control_request", "control_response", "control_cancel_request"})


def is_two_way(value: Any) -> bool:
    """Return whether this is a line of the control protocol."""
    line = mapping(value)
    return text(line.get("type")) in CONTROL_LINES and bool({"request", "response", "request_id"} & line.keys())


def is_one_shot(value: Any) -> bool:
    """Return whether both protocols have this line.

    Without control lines a recording is one-shot, since no request can have been answered.
    """
    line = mapping(value)
    match line.get("type"):
        case "system":
            own = "claude_code_version" if line.get("subtype") == "init" else "uuid"
            return own in line and "session_id" in line
        case "assistant" | "user" | "stream_event":
            return "session_id" in line and "parent_tool_use_id" in line
        case "result":
            return "modelUsage" in line or "permission_denials" in line
    return False


def _sessions() -> "SessionStore":
    from agent_mux_adapters.claude.sessions import STORE  # noqa: PLC0415  # a run does without

    return STORE


def _installation() -> "AgentInstallation":
    from agent_mux_adapters.claude.installation import HOME  # noqa: PLC0415  # a run does without

    return HOME


STREAMS: frozenset[Capability] = frozenset({"text", "tool_calls", "thinking"})
LOSES = ("the output of commands while they run", "stderr of commands apart from stdout")
"""The losses of both protocols, which share the output format."""

ADAPTER = Adapter(
    agent="claude",
    display_name="Claude Code",
    aliases=("claude-code",),
    executables=("claude",),
    executable_variable="AMUX_CLAUDE_EXECUTABLE",
    session_variables=(
        "CLAUDECODE",
        "AI_AGENT",
        "CLAUDE_PID",
        "CLAUDE_EFFORT",
        "CLAUDE_JOB_DIR",
        "CLAUDE_PROJECT_DIR",
        "CLAUDE_PLUGIN_ROOT",
        "CLAUDE_PLUGIN_DATA",
        "CLAUDE_ENV_FILE",
        "CLAUDE_AGENT",
        "CLAUDE_AGENT_SDK_VERSION",
        "CLAUDE_AGENT_SDK_CLIENT_APP",
        "CLAUDE_SESSION_*",
        "CLAUDE_INTERNAL_*",
        "CLAUDE_BG_*",
        "CLAUDE_BRIDGE_*",
        "CLAUDE_RUNNER_*",
        "CLAUDE_RELAUNCH_*",
        "CLAUDE_CODE_ENTRYPOINT*",
        "CLAUDE_CODE_SSE_PORT",
        "CLAUDE_CODE_SESSION_*",
        "CLAUDE_CODE_CHILD_*",
        "CLAUDE_CODE_PARENT_*",
        "CLAUDE_CODE_MESSAGING_*",
        "CLAUDE_CODE_BRIDGE_*",
        "CLAUDE_CODE_RUNNER_*",
        "CLAUDE_CODE_WORKER_*",
        "CLAUDE_CODE_CCR_*",
        "CLAUDE_CODE_LAUNCHED_BY_*",
        "CLAUDE_CODE_USER_DELEGATED_*",
        "CLAUDE_CODE_SDK_*",
        "CLAUDE_CODE_TMUX_SESSION",
        "CLAUDE_CODE_TMUX_PREFIX",
        "CLAUDE_CODE_AGENT",
        "CLAUDE_CODE_SCRATCHPAD_DIR",
        "CLAUDE_CODE_RESUME_FROM_SESSION",
        "CLAUDE_CODE_REMOTE_SESSION_*",
        "CLAUDE_CODE_HOST_SESSION_ID",
        "CLAUDE_CODE_HOST_CHECKED_FOLDER",
        "CLAUDE_CODE_CLOUD_SESSION_ID",
        "CLAUDE_CODE_*_FILE_DESCRIPTOR",
    ),
    tested_version="2.1.332",
    also_tested_versions=("1.0.120", "2.0.76", "2.1.197", "2.1.330"),
    capabilities=CAPABILITIES,
    protocols={
        TWO_WAY: NativeProtocol(
            name=TWO_WAY,
            codec=ClaudeCodec,
            streams=STREAMS,
            two_way=True,
            sniff=is_two_way,
            chosen_for="runs with approvals, questions or further prompts; and as root outside a sandbox",
            loses=LOSES,
        ),
        ONE_SHOT: NativeProtocol(
            name=ONE_SHOT,
            codec=ClaudeCodec,
            streams=STREAMS,
            two_way=False,
            sniff=is_one_shot,
            chosen_for="one prompt in mode `yolo`, without callbacks",
            loses=LOSES,
        ),
    },
    # Claude Code calls PermissionRequest hooks while it waits for our answer, and takes the first answer.
    hooks_for_run=frozenset(HOOK_EVENTS) - {"permission_request"},
    tools_over="streamable-http",
    spawn=build_spawn_args,
    context=build_context,
    owned_flags=OWNED_FLAGS,
    models=offered(__file__),
    takes_any_model=False,
    install=(
        InstallMethod(kind="npm", command="npm install -g @anthropic-ai/claude-code", requires=("npm",)),
        InstallMethod(
            kind="brew", command="brew install --cask claude-code", platforms=("darwin", "linux"), requires=("brew",)
        ),
        InstallMethod(
            kind="winget", command="winget install Anthropic.ClaudeCode", platforms=("win32",), requires=("winget",)
        ),
    ),
    sessions=_sessions,
    installation=_installation,
    auth_guidance="Set ANTHROPIC_API_KEY, or run `claude` and log in with /login.",
)
