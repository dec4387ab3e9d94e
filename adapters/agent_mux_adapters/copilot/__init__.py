"""GitHub Copilot CLI: headless JSON-RPC for nearly all runs, `--output-format json` for a few, ACP for transcripts."""

from typing import TYPE_CHECKING

from agent_mux.sdk.adapter import Adapter, AgentCapabilities, InstallMethod, NativeProtocol
from agent_mux_adapters._models import offered
from agent_mux_adapters.copilot.acp_codec import ACP_PROTOCOL
from agent_mux_adapters.copilot.argv import (
    ACP,
    HEADLESS,
    JSON,
    OWNED_FLAGS,
    THINKING_KEYS,
    build_context,
    build_spawn_args,
)
from agent_mux_adapters.copilot.headless_codec import CopilotHeadlessCodec, is_headless_line
from agent_mux_adapters.copilot.json_codec import CopilotJsonCodec, is_json_line

if TYPE_CHECKING:
    from agent_mux.sdk.installation import AgentInstallation
    from agent_mux.sdk.sessions import SessionStore

__all__ = ["ADAPTER", "CAPABILITIES"]

CAPABILITIES = AgentCapabilities(
    agent="copilot",
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
    auth_methods=("own-provider", "github-token", "github-oauth", "github-cli"),
    auth_files=("~/.copilot/config.json",),
    emits=frozenset({
        "approval_denied", "approval_granted", "approval_request", "auth_error", "context_compacted",
        "context_exceeded", "context_limit_warning", "cost", "debug", "error", "file_create", "file_delete",
        "file_patch", "file_read", "image_input_ack", "input_required", "interrupted", "log", "mcp_tool_call_start",
        "mcp_tool_error", "mcp_tool_result", "message_start", "message_stop", "rate_limit_error", "rate_limited",
        "retry", "session_end", "session_fork", "session_resume", "session_start", "shell_exit", "shell_start",
        "shell_stderr_delta", "shell_stdout_delta", "skill_loaded", "step_end", "step_start", "subagent_result",
        "subagent_spawn", "text_delta", "thinking_delta", "thinking_start", "thinking_stop", "token_usage",
        "tool_call_ready", "tool_call_start", "tool_error", "tool_input_delta", "tool_result", "turn_end", "turn_start",
    }),
)  # fmt: skip


def _sessions() -> "SessionStore":
    from agent_mux_adapters.copilot.sessions import STORE  # noqa: PLC0415  # runs do not need it

    return STORE


def _installation() -> "AgentInstallation":
    from agent_mux_adapters.copilot.installation import HOME  # noqa: PLC0415  # runs do not need it

    return HOME


ADAPTER = Adapter(
    agent="copilot",
    display_name="GitHub Copilot CLI",
    aliases=("github-copilot",),
    executables=("copilot",),
    executable_variable="AMUX_COPILOT_EXECUTABLE",
    session_variables=(
        "COPILOT_CLI",
        "COPILOT_AGENT_SESSION_*",
        "COPILOT_SESSION_*",
        "COPILOT_LOADER_PID",
        "COPILOT_CLI_*VERSION",
        "COPILOT_CLI_*DIST_DIR",
    ),
    tested_version="1.0.102",
    also_tested_versions=("1.0.40", "1.0.54"),
    capabilities=CAPABILITIES,
    protocols={
        JSON: NativeProtocol(
            name=JSON,
            codec=CopilotJsonCodec,
            streams=frozenset({"text", "tool_calls", "thinking"}),
            two_way=False,
            sniff=is_json_line,
            chosen_for="one prompt in mode `yolo` without further options, if the environment has a secret that the "
            "headless protocol could carry only as recorded input",
            loses=("tokens and cost", "the session's id until the last line"),
        ),
        HEADLESS: NativeProtocol(
            name=HEADLESS,
            codec=CopilotHeadlessCodec,
            streams=frozenset({"text", "tool_calls", "thinking"}),
            two_way=True,
            sniff=is_headless_line,
            chosen_for="all other runs",
            loses=(),
            framing="content-length",
        ),
        ACP: ACP_PROTOCOL,
    },
    tools_over="streamable-http",
    spawn=build_spawn_args,
    context=build_context,
    owned_flags=OWNED_FLAGS,
    repeatable_flags=frozenset({"--additional-mcp-config"}),
    models=offered(__file__),
    takes_any_model=False,
    install=(
        InstallMethod(kind="npm", command="npm install -g @github/copilot", requires=("npm",)),
        InstallMethod(
            kind="brew", command="brew install copilot-cli", platforms=("darwin", "linux"), requires=("brew",)
        ),
        InstallMethod(kind="winget", command="winget install GitHub.Copilot", platforms=("win32",)),
    ),
    sessions=_sessions,
    installation=_installation,
    auth_guidance=(
        "run `copilot login`, or set COPILOT_GITHUB_TOKEN, or COPILOT_PROVIDER_BASE_URL for a provider of your own"
    ),
)
