"""Adapter of OpenClaw: `openclaw agent exec` for one-shot runs, ACP with a gateway of its own for everything else."""

from typing import TYPE_CHECKING

from agent_mux.sdk.adapter import Adapter, AgentCapabilities, InstallMethod, NativeProtocol
from agent_mux_adapters._models import offered
from agent_mux_adapters.openclaw.acp_codec import openclaw_acp_protocol
from agent_mux_adapters.openclaw.argv import ACP, EXEC, OWNED_FLAGS, THINKING_KEYS, build_spawn_args, codec_context
from agent_mux_adapters.openclaw.exec_codec import OpenClawExecCodec, is_document
from agent_mux_adapters.openclaw.models import LISTING

if TYPE_CHECKING:
    from agent_mux.sdk.installation import AgentInstallation
    from agent_mux.sdk.sessions import SessionStore

__all__ = ["ADAPTER", "CAPABILITIES"]

CAPABILITIES = AgentCapabilities(
    agent="openclaw",
    can_resume=True,
    supports_multi_turn=True,
    session_persistence="sqlite",
    text_streaming=True,
    mcp=True,
    parallel_tool_calls=True,
    requires_tool_approval=True,
    approval_modes=("yolo", "prompt", "deny"),
    thinking=True,
    thinking_override=THINKING_KEYS,
    fallback_model=True,
    disallowed_tools=True,
    extra_args=True,
    native_options=True,
    thinking_effort_levels=("low", "medium", "high", "max"),
    skills=True,
    interactive_mode=True,
    stdin_injection=True,
    image_input=True,
    file_attachments=True,
    plugins=True,
    auth_methods=("oauth", "token", "api_key"),
    auth_files=("~/.openclaw/state/openclaw.sqlite", "~/.openclaw/openclaw.json", "~/.openclaw/.env"),
    emits=frozenset({
        "approval_denied", "approval_granted", "approval_request", "auth_error", "context_exceeded", "cost", "error",
        "file_create", "file_patch", "file_read", "mcp_tool_call_start", "mcp_tool_error", "mcp_tool_result",
        "message_start", "message_stop", "rate_limited", "retry", "session_resume", "shell_exit", "shell_start",
        "shell_stdout_delta", "step_end", "step_start", "text_delta", "thinking_delta", "thinking_start",
        "thinking_stop", "token_usage", "tool_call_ready", "tool_call_start", "tool_error", "tool_result", "turn_end",
        "turn_start",
    }),
)  # fmt: skip


def _sessions() -> "SessionStore":
    from agent_mux_adapters.openclaw.sessions import STORE  # noqa: PLC0415  # runs do not need it

    return STORE


def _installation() -> "AgentInstallation":
    from agent_mux_adapters.openclaw.installation import HOME  # noqa: PLC0415  # runs do not need it

    return HOME


ADAPTER = Adapter(
    agent="openclaw",
    display_name="OpenClaw",
    executables=("openclaw",),
    executable_variable="AMUX_OPENCLAW_EXECUTABLE",
    session_variables=(
        "OPENCLAW_SHELL",
        "OPENCLAW_CLI",
        "OPENCLAW_CHANNEL_CONTEXT",
        "OPENCLAW_MCP_*",
        "OPENCLAW_TOOLS_MCP_*",
        "OPENCLAW_SUBAGENT_*",
        "OPENCLAW_SERVICE_*",
        "OPENCLAW_UPDATE_*",
    ),
    tested_version="2026.9.6",
    capabilities=CAPABILITIES,
    protocols={
        EXEC: NativeProtocol(
            name=EXEC,
            codec=OpenClawExecCodec,
            streams=frozenset(),
            two_way=False,
            sniff=is_document,
            chosen_for="one prompt in mode `yolo` without approval handlers, in a new session, without MCP servers, "
            "attachments, sampling and limits, unless `stream` is set",
            loses=(
                "everything until the end: nothing streams",
                "all texts but the last",
                "tools: only how many calls there were",
                "where model calls begin, and retries",
                "sub-agents",
            ),
        ),
        ACP: openclaw_acp_protocol(ACP),
    },
    spawn=build_spawn_args,
    context=codec_context,
    owned_flags=OWNED_FLAGS,
    models=offered(__file__),
    model_listing=LISTING,
    sessions=_sessions,
    installation=_installation,
    install=(InstallMethod(kind="npm", command="npm install -g openclaw", requires=("npm", "node")),),
    auth_guidance="Run `openclaw models auth login` or `openclaw models auth paste-api-key`, or set the provider's key "
    "(for example ANTHROPIC_API_KEY).",
)
