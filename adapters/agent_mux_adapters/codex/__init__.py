"""Codex CLI: `codex exec --json` for one-shot runs, `codex app-server` for all others."""

from typing import TYPE_CHECKING

from agent_mux.sdk.adapter import Adapter, AgentCapabilities, InstallMethod, NativeProtocol
from agent_mux_adapters._models import offered
from agent_mux_adapters.codex.app_server_codec import CodexAppServerCodec, is_app_server_line
from agent_mux_adapters.codex.argv import APP_SERVER, EXEC, OWNED_FLAGS, THINKING_KEYS, build_spawn_args, codec_context
from agent_mux_adapters.codex.exec_codec import CodexExecCodec, is_exec_line
from agent_mux_adapters.codex.models import LISTING

if TYPE_CHECKING:
    from agent_mux.sdk.installation import AgentInstallation
    from agent_mux.sdk.sessions import SessionStore

__all__ = ["ADAPTER", "CAPABILITIES"]

CAPABILITIES = AgentCapabilities(
    agent="codex",
    can_resume=True,
    can_fork=True,
    supports_multi_turn=True,
    session_persistence="file",
    text_streaming=True,
    thinking_streaming=True,
    mcp=True,
    parallel_tool_calls=True,
    requires_tool_approval=True,
    approval_modes=("yolo", "prompt", "deny", "plan"),
    thinking=True,
    thinking_effort_levels=("low", "medium", "high", "max"),
    thinking_override=THINKING_KEYS,
    add_dirs=True,
    extra_args=True,
    native_options=True,
    set_model=True,
    set_approval_mode=("plan", "prompt", "deny", "yolo"),
    structured_output=True,
    skills=True,
    agents_md=True,
    subagent_dispatch=True,
    interactive_mode=True,
    stdin_injection=True,
    image_input=True,
    plugins=True,
    auth_methods=("own-provider", "access-token", "api-key", "chatgpt", "exec-key"),
    auth_files=("~/.codex/auth.json",),
    emits=frozenset({
        "approval_denied", "approval_granted", "approval_request", "auth_error", "context_compacted",
        "context_exceeded", "context_limit_warning", "cost", "crash", "debug", "error", "file_create", "file_delete",
        "file_patch", "input_required", "interrupted", "log", "mcp_tool_call_start", "mcp_tool_error",
        "mcp_tool_result", "message_start", "message_stop", "rate_limit_error", "rate_limited", "retry", "session_end",
        "session_fork", "session_resume", "session_start", "shell_exit", "shell_start", "shell_stdout_delta",
        "step_end", "step_start", "stream_fallback", "subagent_result", "subagent_spawn", "text_delta",
        "thinking_delta", "thinking_start", "thinking_stop", "token_usage", "tool_call_ready", "tool_call_start",
        "tool_error", "tool_result", "turn_end", "turn_start",
    }),
)  # fmt: skip


def _sessions() -> "SessionStore":
    from agent_mux_adapters.codex.sessions import STORE  # noqa: PLC0415  # runs do not need it

    return STORE


def _installation() -> "AgentInstallation":
    from agent_mux_adapters.codex.installation import HOME  # noqa: PLC0415  # runs do not need it

    return HOME


ADAPTER = Adapter(
    agent="codex",
    display_name="Codex CLI",
    executables=("codex",),
    executable_variable="AMUX_CODEX_EXECUTABLE",
    session_variables=(
        "CODEX_THREAD_ID",
        "CODEX_SESSION_ID",
        "CODEX_TURN_*",
        "CODEX_TOOL_CALL_*",
        "CODEX_CI",
        "CODEX_SANDBOX",
        "CODEX_SANDBOX_*",
        "CODEX_PERMISSION_*",
        "CODEX_NETWORK_PROXY_*",
        "CODEX_SNAPSHOT_*",
        "CODEX_SHELL_SNAPSHOT_*",
        "CODEX_ESCALATE_SOCKET",
        "CODEX_EXECVE_WRAPPER",
        "CODEX_INTERNAL_ORIGINATOR_OVERRIDE",
        "CODEX_MANAGED_*",
    ),
    tested_version="0.171.0",
    also_tested_versions=("0.80.0", "0.169.0"),
    capabilities=CAPABILITIES,
    protocols={
        EXEC: NativeProtocol(
            name=EXEC,
            codec=CodexExecCodec,
            streams=frozenset(),
            two_way=False,
            sniff=is_exec_line,
            chosen_for="one prompt in mode `yolo` without callbacks, in a new session, without a system prompt, a turn "
            "limit, inline images or requested streaming",
            loses=(
                "streaming of text, thoughts and command output: each arrives whole",
                "diffs of changed files, failed patches and calls of unknown tools",
                "where model calls begin",
                "the compaction of the context",
                "error codes: errors are prose only",
                "stderr of commands: it is merged into stdout",
            ),
        ),
        APP_SERVER: NativeProtocol(
            name=APP_SERVER,
            codec=CodexAppServerCodec,
            streams=frozenset({"text", "thinking"}),
            two_way=True,
            sniff=is_app_server_line,
            chosen_for="all other runs",
            loses=("streaming of tool inputs", "stderr of commands: it is merged into stdout"),
        ),
    },
    tools_over="streamable-http",
    spawn=build_spawn_args,
    context=codec_context,
    owned_flags=OWNED_FLAGS,
    models=offered(__file__),
    takes_any_model=False,
    model_listing=LISTING,
    install=(
        InstallMethod(kind="npm", command="npm install -g @openai/codex", requires=("npm",)),
        InstallMethod(kind="brew", command="brew install --cask codex", platforms=("darwin",), requires=("brew",)),
    ),
    sessions=_sessions,
    installation=_installation,
    auth_guidance="run `codex login`, or `codex login --with-api-key` with the key on standard input",
)
