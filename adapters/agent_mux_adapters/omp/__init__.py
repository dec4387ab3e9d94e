"""omp (oh-my-pi): json mode for one-shot runs, rpc mode for everything else; ACP recordings can be read."""

from functools import partial
from typing import TYPE_CHECKING, Any

from agent_mux.sdk.adapter import Adapter, AgentCapabilities, InstallMethod, NativeProtocol
from agent_mux.sdk.facts import Capability
from agent_mux_adapters._dialects.acp import acp_protocol
from agent_mux_adapters._dialects.pi.argv import OWNED_FLAGS, REPEATABLE_FLAGS, THINKING_KEYS
from agent_mux_adapters._dialects.pi.flavor import Flavor
from agent_mux_adapters._dialects.pi.json_codec import PiJsonCodec
from agent_mux_adapters._dialects.pi.rpc_codec import PiRpcCodec
from agent_mux_adapters._dialects.pi.wire import is_event, is_rpc_line
from agent_mux_adapters._dialects.tolerant import mapping
from agent_mux_adapters._models import offered
from agent_mux_adapters.omp.acp_reader import QUIRKS
from agent_mux_adapters.omp.approvals import read_approval
from agent_mux_adapters.omp.argv import JSON, RPC, build_context, build_spawn_args
from agent_mux_adapters.omp.models import LISTING
from agent_mux_adapters.omp.notices import IGNORED_LINES
from agent_mux_adapters.omp.tools import DELEGATING, FILE_EFFECTS, read_shell_result, shell_of, split_mcp_name

if TYPE_CHECKING:
    from agent_mux.sdk.installation import AgentInstallation
    from agent_mux.sdk.sessions import SessionStore

__all__ = ["ADAPTER", "CAPABILITIES", "FLAVOR"]

FLAVOR = Flavor(
    agent="omp",
    shell_of=shell_of,
    read_shell_result=read_shell_result,
    file_effects=FILE_EFFECTS,
    mcp_server_and_tool=split_mcp_name,
    delegating_tools=DELEGATING,
    read_approval=read_approval,
    free_text_option="Other (type your own)",
    marks_final_end=True,
    session_command="get_session_stats",  # the response to `get_state` contains the whole system prompt
    protocol_version=2,  # version 1 shortens the texts of lines above 1 MiB
    initial_commands=(("set_subagent_subscription", {"level": "events"}),),
    ignored_lines=IGNORED_LINES,
)

CAPABILITIES = AgentCapabilities(
    agent="omp",
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
    fallback_model=True,
    allowed_tools=True,
    disallowed_tools=True,
    add_dirs=True,
    extra_args=True,
    native_options=True,
    thinking_effort_levels=("low", "medium", "high", "max"),
    thinking_budget_tokens=True,
    skills=True,
    agents_md=True,
    subagent_dispatch=True,
    parallel_execution=True,
    interactive_mode=True,
    stdin_injection=True,
    image_input=True,
    file_attachments=True,
    plugins=True,
    auth_methods=("oauth", "api_key", "cloud"),
    auth_files=("~/.omp/agent/agent.db",),
    emits=frozenset({
        "approval_denied", "approval_granted", "approval_request", "auth_error", "context_exceeded", "cost",
        "crash", "debug", "error", "file_create", "file_patch", "file_read", "file_write", "input_required",
        "interrupted", "log", "mcp_tool_call_start", "mcp_tool_error", "mcp_tool_result", "message_start",
        "message_stop", "rate_limit_error", "retry", "session_end", "session_resume", "session_start", "shell_exit",
        "shell_start", "shell_stdout_delta", "step_end", "step_start", "stream_fallback", "subagent_result",
        "subagent_spawn", "text_delta", "thinking_delta", "thinking_start", "thinking_stop", "token_usage",
        "tool_call_ready", "tool_call_start", "tool_error", "tool_input_delta", "tool_result", "turn_end",
        "turn_start",
    }),
)  # fmt: skip

STREAMS: frozenset[Capability] = frozenset({"text", "tool_calls", "thinking"})
REPEATED = "the first attempts of a failing model call, which the provider's client retries itself"
MERGED = "the stderr of commands (merged into stdout)"
JSON_STREAMS: frozenset[Capability] = frozenset({"text", "thinking"})
"""In json mode the id of a call comes only with its complete input."""


def is_json_line(value: Any) -> bool:
    """Return whether a line is printed in json mode by omp, and not by pi."""
    line = mapping(value)
    message = line.get("message")
    own = "isTerminal" in line or "intent" in line or (isinstance(message, dict) and "attribution" in message)
    return line.get("type") == "advisor_cost_changed" or (own and is_event(line))


def _sessions() -> "SessionStore":
    from agent_mux_adapters._dialects.pi.sessions import session_store  # noqa: PLC0415  # not needed by runs
    from agent_mux_adapters.omp.paths import data_directory  # noqa: PLC0415

    return session_store(FLAVOR, data_directory)


def _installation() -> "AgentInstallation":
    from agent_mux_adapters.omp.installation import HOME  # noqa: PLC0415  # not needed by runs

    return HOME


ADAPTER = Adapter(
    agent="omp",
    display_name="oh-my-pi",
    aliases=("oh-my-pi",),
    executables=("omp",),
    executable_variable="AMUX_OMP_EXECUTABLE",
    session_variables=(
        "OMPCODE",
        "CLAUDECODE",
        "AI_AGENT",
        "PI_CODING_AGENT",
        "PI_SESSION_*",
        "PI_ARTIFACTS_DIR",
        "PI_TOOL_BRIDGE_*",
        "PI_EVAL_*",
        "PI_BLOCKED_AGENT",
        "OMP_LAUNCH_CWD",
        "OMP_DAEMON_*",
        "OMP_*_SOCKET",
    ),
    tested_version="18.2.3",
    capabilities=CAPABILITIES,
    protocols={
        RPC: NativeProtocol(
            name=RPC,
            codec=partial(PiRpcCodec, flavor=FLAVOR),
            streams=STREAMS,
            two_way=True,
            sniff=is_rpc_line,
            chosen_for="runs with approvals, questions or further prompts, and inline images",
            loses=(REPEATED, MERGED),
        ),
        JSON: NativeProtocol(
            name=JSON,
            codec=partial(PiJsonCodec, flavor=FLAVOR),
            streams=JSON_STREAMS,
            two_way=False,
            sniff=is_json_line,
            chosen_for="one prompt in mode `yolo` without approvals or questions",
            loses=("streaming tool inputs: the id of a call comes with its complete input", REPEATED, MERGED),
        ),
        "acp": acp_protocol(
            QUIRKS,
            loses=(
                "tool names",
                "retries, and the tokens of each model call",
                "questions",
                "sub-agents",
                "streaming tool inputs",
                MERGED,
            ),
        ),
    },
    spawn=build_spawn_args,
    context=build_context,
    owned_flags=OWNED_FLAGS,
    repeatable_flags=REPEATABLE_FLAGS,
    models=offered(__file__),
    model_listing=LISTING,
    install=(InstallMethod(kind="npm", command="npm install -g @oh-my-pi/pi-coding-agent", requires=("npm", "bun")),),
    sessions=_sessions,
    installation=_installation,
    auth_guidance=(
        "Run `omp auth-broker login`, or `omp` and log in with /login, or set the API key of a provider, for example "
        "ANTHROPIC_API_KEY."
    ),
)
