"""Adapter of Hermes Agent: runs use the gateway of its terminal interface, or ACP where that cannot be started."""

from typing import TYPE_CHECKING

from agent_mux.sdk.adapter import Adapter, AgentCapabilities, InstallMethod, NativeProtocol
from agent_mux_adapters._models import offered
from agent_mux_adapters.hermes.acp_codec import hermes_acp_protocol
from agent_mux_adapters.hermes.argv import ACP, AGENT, THINKING_KEYS, build_spawn_args, codec_context
from agent_mux_adapters.hermes.gateway_codec import GATEWAY, HermesGatewayCodec
from agent_mux_adapters.hermes.text_codec import TEXT, HermesTextCodec
from agent_mux_adapters.hermes.wire import is_gateway_line

if TYPE_CHECKING:
    from agent_mux.sdk.installation import AgentInstallation
    from agent_mux.sdk.sessions import SessionStore

__all__ = ["ADAPTER", "CAPABILITIES"]

CAPABILITIES = AgentCapabilities(
    agent=AGENT,
    can_resume=True,
    can_fork=True,
    supports_multi_turn=True,
    session_persistence="sqlite",
    text_streaming=True,
    thinking_streaming=True,
    mcp=True,
    parallel_tool_calls=True,
    requires_tool_approval=True,
    approval_modes=("yolo", "prompt", "deny"),
    thinking=True,
    thinking_override=THINKING_KEYS,
    native_options=True,
    thinking_effort_levels=("low", "medium", "high", "max"),
    skills=True,
    agents_md=True,
    subagent_dispatch=True,
    parallel_execution=True,
    interactive_mode=True,
    stdin_injection=True,
    image_input=True,
    plugins=True,
    auth_methods=("oauth", "api_key"),
    auth_files=("~/.hermes/auth.json", "~/.hermes/.env", "~/.hermes/config.yaml"),
    emits=frozenset(
        {
            "approval_denied",
            "approval_granted",
            "approval_request",
            "auth_error",
            "context_compacted",
            "context_exceeded",
            "cost",
            "error",
            "file_create",
            "file_delete",
            "file_patch",
            "file_read",
            "file_write",
            "image_input_ack",
            "input_required",
            "mcp_tool_call_start",
            "mcp_tool_error",
            "mcp_tool_result",
            "message_start",
            "message_stop",
            "rate_limit_error",
            "retry",
            "session_fork",
            "session_resume",
            "shell_exit",
            "shell_start",
            "shell_stdout_delta",
            "skill_invoked",
            "step_end",
            "step_start",
            "subagent_result",
            "subagent_spawn",
            "text_delta",
            "thinking_delta",
            "thinking_start",
            "thinking_stop",
            "token_usage",
            "tool_call_ready",
            "tool_call_start",
            "tool_error",
            "tool_result",
            "turn_end",
            "turn_limit",
            "turn_start",
        }
    ),
)


def _sessions() -> "SessionStore":
    from agent_mux_adapters.hermes.sessions import STORE  # noqa: PLC0415  # runs do not need it

    return STORE


def _installation() -> "AgentInstallation":
    from agent_mux_adapters.hermes.installation import HOME  # noqa: PLC0415  # runs do not need it

    return HOME


ADAPTER = Adapter(
    agent=AGENT,
    display_name="Hermes Agent",
    aliases=("hermes-agent",),
    executables=("hermes",),
    executable_variable="AMUX_HERMES_EXECUTABLE",
    session_variables=(
        "HERMES_SESSION_*",
        "HERMES_TUI_SIDECAR_URL",
    ),
    tested_version="0.19.0",
    capabilities=CAPABILITIES,
    protocols={
        GATEWAY: NativeProtocol(
            name=GATEWAY,
            codec=HermesGatewayCodec,
            streams=frozenset({"text", "thinking"}),
            two_way=True,
            sniff=is_gateway_line,
            chosen_for="all runs, where the Python of the hermes installation is found",
            loses=(
                "tool inputs as they stream, and the output of commands while they run",
                "stderr of commands apart from stdout",
            ),
        ),
        ACP: hermes_acp_protocol(),
        TEXT: NativeProtocol(
            name=TEXT,
            codec=HermesTextCodec,
            streams=frozenset(),
            two_way=False,
            sniff=lambda _: False,
            loses=(
                "everything except the session id and provider errors: the output is text for people, kept as a log",
            ),
        ),
    },
    spawn=build_spawn_args,
    context=codec_context,
    models=offered(__file__),
    sessions=_sessions,
    installation=_installation,
    install=(InstallMethod(kind="pip", command="pip install 'hermes-agent[acp,mcp]'", requires=("python3",)),),
    auth_guidance="Run `hermes model` and choose a provider, or `hermes auth add`, or set the provider's key "
    "(for example OPENROUTER_API_KEY).",
)
