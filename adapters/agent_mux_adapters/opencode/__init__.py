"""OpenCode: its server behind our bridge, `opencode run --format json`, and `opencode acp` recordings."""

from typing import TYPE_CHECKING

from agent_mux.sdk.adapter import Adapter, AgentCapabilities, InstallMethod, NativeProtocol
from agent_mux_adapters._models import offered
from agent_mux_adapters.opencode.acp_reader import ACP_PROTOCOL
from agent_mux_adapters.opencode.argv import (
    ACP,
    OWNED_FLAGS,
    RUN,
    SERVE,
    THINKING_KEYS,
    build_context,
    build_spawn_args,
)
from agent_mux_adapters.opencode.models import LISTING
from agent_mux_adapters.opencode.outcome import GUIDANCE
from agent_mux_adapters.opencode.run_codec import OpencodeRunCodec
from agent_mux_adapters.opencode.serve_codec import OpencodeServeCodec
from agent_mux_adapters.opencode.wire import is_run_line, is_serve_line

if TYPE_CHECKING:
    from agent_mux.sdk.installation import AgentInstallation
    from agent_mux.sdk.sessions import SessionStore

__all__ = ["ADAPTER", "CAPABILITIES"]

CAPABILITIES = AgentCapabilities(
    agent="opencode",
    can_resume=True,
    can_fork=True,
    supports_multi_turn=True,
    session_persistence="sqlite",
    text_streaming=True,
    thinking_streaming=True,
    mcp=True,
    parallel_tool_calls=True,
    requires_tool_approval=True,
    approval_modes=("yolo", "prompt", "deny", "plan"),
    thinking_override=THINKING_KEYS,
    allowed_tools=True,
    disallowed_tools=True,
    add_dirs=True,
    extra_args=True,
    native_options=True,
    set_model=True,
    set_approval_mode=("plan", "prompt", "deny", "yolo"),
    thinking=True,
    thinking_effort_levels=("low", "medium", "high", "max"),
    structured_output=True,
    skills=True,
    agents_md=True,
    subagent_dispatch=True,
    interactive_mode=True,
    stdin_injection=True,
    image_input=True,
    file_attachments=True,
    plugins=True,
    platforms=("linux", "darwin"),
    auth_methods=("api_key", "oauth", "organization"),
    auth_files=("~/.local/share/opencode/auth.json",),
    emits=frozenset({
        "approval_denied", "approval_granted", "approval_request", "auth_error", "context_compacted",
        "context_exceeded", "cost", "crash", "debug", "error", "file_create", "file_patch", "file_read", "file_write",
        "input_required", "interrupted", "log", "mcp_tool_call_start", "mcp_tool_error", "mcp_tool_result",
        "message_start", "message_stop", "rate_limit_error", "rate_limited", "retry", "session_end", "session_fork",
        "session_resume", "session_start", "shell_exit", "shell_start", "shell_stdout_delta", "skill_invoked",
        "step_end", "step_start", "stream_fallback", "subagent_result", "subagent_spawn", "text_delta",
        "thinking_delta", "thinking_start", "thinking_stop", "token_usage", "tool_call_ready", "tool_call_start",
        "tool_error", "tool_result", "turn_end", "turn_start",
    }),
)  # fmt: skip

LOSES = (
    "streaming tool inputs",
    "output of a command beyond 30 kB",
    "the stderr of commands (merged into stdout)",
)


def _sessions() -> "SessionStore":
    from agent_mux_adapters.opencode.sessions import STORE  # noqa: PLC0415  # not needed by runs

    return STORE


def _installation() -> "AgentInstallation":
    from agent_mux_adapters.opencode.installation import HOME  # noqa: PLC0415  # not needed by runs

    return HOME


ADAPTER = Adapter(
    agent="opencode",
    display_name="OpenCode",
    executables=("opencode",),
    executable_variable="AMUX_OPENCODE_EXECUTABLE",
    session_variables=(
        "OPENCODE",
        "AGENT",
        "OPENCODE_PID",
        "OPENCODE_RUN_ID",
        "OPENCODE_PROCESS_*",
        "OPENCODE_SESSION_*",
        "OPENCODE_WORKSPACE_ID",
        "OPENCODE_CLIENT",
        "OPENCODE_TERMINAL",
        "OPENCODE_ROUTE",
        "OPENCODE_EDITOR_*",
    ),
    tested_version="1.18.33",
    also_tested_versions=("1.2.27",),
    capabilities=CAPABILITIES,
    protocols={
        RUN: NativeProtocol(
            name=RUN,
            codec=OpencodeRunCodec,
            streams=frozenset(),
            two_way=False,
            sniff=is_run_line,
            chosen_for="one prompt in mode `yolo` with `stream=False`, without approvals, questions, attachments, "
            "output schema or `no_session`",
            loses=(
                "streaming of text, thinking and command output: each is emitted when complete",
                "the start of a tool call",
                "retries",
                "the work and the cost of sub-agents",
                *LOSES,
            ),
        ),
        SERVE: NativeProtocol(
            name=SERVE,
            codec=OpencodeServeCodec,
            streams=frozenset({"text", "thinking"}),
            two_way=True,
            sniff=is_serve_line,
            chosen_for="all other runs",
            loses=LOSES,
        ),
        ACP: ACP_PROTOCOL,
    },
    tools_over="streamable-http",
    spawn=build_spawn_args,
    context=build_context,
    owned_flags=OWNED_FLAGS,
    models=offered(__file__),
    model_listing=LISTING,
    install=(
        InstallMethod(kind="npm", command="npm install -g opencode-ai", requires=("npm",)),
        InstallMethod(kind="brew", command="brew install opencode", platforms=("darwin", "linux"), requires=("brew",)),
        InstallMethod(kind="curl", command="curl -fsSL https://opencode.ai/install | bash", requires=("curl", "bash")),
    ),
    auth_guidance=GUIDANCE,
    sessions=_sessions,
    installation=_installation,
)
