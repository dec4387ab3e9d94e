"""pi: json mode for one-shot runs, rpc mode for everything else."""

from functools import partial
from typing import TYPE_CHECKING, Any

from agent_mux.sdk.adapter import Adapter, AgentCapabilities, InstallMethod, NativeProtocol
from agent_mux.sdk.facts import Capability
from agent_mux_adapters._dialects.pi.argv import OWNED_FLAGS, REPEATABLE_FLAGS, THINKING_KEYS
from agent_mux_adapters._dialects.pi.flavor import Flavor
from agent_mux_adapters._dialects.pi.json_codec import PiJsonCodec
from agent_mux_adapters._dialects.pi.rpc_codec import PiRpcCodec
from agent_mux_adapters._dialects.pi.wire import is_event, is_rpc_line
from agent_mux_adapters._dialects.tolerant import mapping
from agent_mux_adapters._models import offered
from agent_mux_adapters.pi.approvals import read_approval
from agent_mux_adapters.pi.argv import JSON, RPC, build_context, build_spawn_args
from agent_mux_adapters.pi.models import LISTING
from agent_mux_adapters.pi.tools import FILE_EFFECTS, read_shell_result, shell_of, split_mcp_name

if TYPE_CHECKING:
    from agent_mux.sdk.installation import AgentInstallation
    from agent_mux.sdk.sessions import SessionStore

__all__ = ["ADAPTER", "CAPABILITIES", "FLAVOR"]

FLAVOR = Flavor(
    agent="pi",
    shell_of=shell_of,
    read_shell_result=read_shell_result,
    file_effects=FILE_EFFECTS,
    mcp_server_and_tool=split_mcp_name,
    read_approval=read_approval,
)

CAPABILITIES = AgentCapabilities(
    agent="pi",
    can_resume=True,
    can_fork=True,
    supports_multi_turn=True,
    session_persistence="file",
    text_streaming=True,
    tool_call_streaming=True,
    thinking_streaming=True,
    mcp=True,
    parallel_tool_calls=True,
    approval_modes=("yolo", "prompt", "deny"),
    thinking=True,
    thinking_override=THINKING_KEYS,
    set_model=True,
    allowed_tools=True,
    disallowed_tools=True,
    extra_args=True,
    thinking_effort_levels=("low", "medium", "high", "max"),
    skills=True,
    agents_md=True,
    interactive_mode=True,
    stdin_injection=True,
    image_input=True,
    file_attachments=True,
    plugins=True,
    auth_methods=("oauth", "api_key", "cloud"),
    auth_files=("~/.pi/agent/auth.json",),
    emits=frozenset({
        "approval_denied", "approval_granted", "approval_request", "auth_error", "context_compacted",
        "context_exceeded", "cost", "crash", "debug", "error", "file_create", "file_patch", "file_read",
        "file_write", "input_required", "interrupted", "log", "mcp_tool_call_start", "mcp_tool_error",
        "mcp_tool_result", "message_start", "message_stop", "rate_limit_error", "rate_limited", "retry",
        "session_end", "session_fork", "session_start",
        "shell_exit", "shell_start", "shell_stdout_delta", "step_end", "step_start", "text_delta",
        "thinking_delta", "thinking_start", "thinking_stop", "token_usage", "tool_call_ready",
        "tool_call_start", "tool_error", "tool_input_delta", "tool_result", "turn_end", "turn_start",
    }),
)  # fmt: skip

STREAMS: frozenset[Capability] = frozenset({"text", "tool_calls", "thinking"})
LOSES = ("the stderr of commands (merged into stdout)", "thinking tokens, in 0.73.1")
"""What both modes lose: rpc mode prints the events of json mode."""


def is_json_line(value: Any) -> bool:
    """Return whether a line is printed in json mode by pi, and not by omp."""
    line = mapping(value)
    return is_event(line) and not {"attribution", "isTerminal"} & line.keys()


def _sessions() -> "SessionStore":
    from agent_mux_adapters._dialects.pi.sessions import session_store  # noqa: PLC0415  # not needed by runs
    from agent_mux_adapters.pi.installation import directory  # noqa: PLC0415

    return session_store(FLAVOR, directory)


def _installation() -> "AgentInstallation":
    from agent_mux_adapters.pi.installation import HOME  # noqa: PLC0415  # not needed by runs

    return HOME


ADAPTER = Adapter(
    agent="pi",
    display_name="pi",
    executables=("pi",),
    executable_variable="AMUX_PI_EXECUTABLE",
    session_variables=(
        "PI_CODING_AGENT",
        "AI_AGENT",
        "PI_SESSION_*",
        "PI_PROVIDER",
        "PI_MODEL",
        "PI_REASONING_LEVEL",
    ),
    tested_version="1.6.0",
    also_tested_versions=("0.52.12", "0.73.1", "0.87.1"),
    capabilities=CAPABILITIES,
    protocols={
        RPC: NativeProtocol(
            name=RPC,
            codec=partial(PiRpcCodec, flavor=FLAVOR),
            streams=STREAMS,
            two_way=True,
            sniff=is_rpc_line,
            chosen_for="runs with approvals, questions or further prompts, and inline images",
            loses=LOSES,
        ),
        JSON: NativeProtocol(
            name=JSON,
            codec=partial(PiJsonCodec, flavor=FLAVOR),
            streams=STREAMS,
            two_way=False,
            sniff=is_json_line,
            chosen_for="one prompt in mode `yolo` without approvals or questions",
            loses=LOSES,
        ),
    },
    spawn=build_spawn_args,
    context=build_context,
    owned_flags=OWNED_FLAGS,
    repeatable_flags=REPEATABLE_FLAGS,
    models=offered(__file__),
    model_listing=LISTING,
    install=(InstallMethod(kind="npm", command="npm install -g @earendil-works/pi-coding-agent", requires=("npm",)),),
    sessions=_sessions,
    installation=_installation,
    auth_guidance="Run `pi` and log in with /login, or set the provider's API key, for example ANTHROPIC_API_KEY.",
)
