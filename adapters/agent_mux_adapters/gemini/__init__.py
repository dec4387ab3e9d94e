"""The adapter of Gemini CLI: stream-json one-shot, ACP two-way."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from agent_mux.sdk.adapter import Adapter, AgentCapabilities, InstallMethod, NativeProtocol
from agent_mux.sdk.facts import Capability
from agent_mux_adapters._dialects.acp import is_acp_line
from agent_mux_adapters._dialects.tolerant import mapping
from agent_mux_adapters._models import offered
from agent_mux_adapters.gemini.acp_codec import GeminiAcpCodec
from agent_mux_adapters.gemini.argv import ACP, OWNED_FLAGS, STREAM_JSON, build_context, build_spawn_args
from agent_mux_adapters.gemini.outcome import GUIDANCE
from agent_mux_adapters.gemini.stream_json_codec import GeminiStreamJsonCodec

if TYPE_CHECKING:
    from agent_mux.sdk.installation import AgentInstallation
    from agent_mux.sdk.sessions import SessionStore

__all__ = ["ADAPTER", "CAPABILITIES"]

CAPABILITIES = AgentCapabilities(
    agent="gemini",
    can_resume=True,
    supports_multi_turn=True,
    session_persistence="file",
    text_streaming=True,
    thinking_streaming=True,
    mcp=True,
    parallel_tool_calls=True,
    requires_tool_approval=True,
    approval_modes=("yolo", "prompt", "deny", "plan"),
    allowed_tools=True,
    disallowed_tools=True,
    add_dirs=True,
    extra_args=True,
    set_model=True,
    set_approval_mode=("plan", "prompt", "deny", "yolo"),
    skills=True,
    agents_md=True,
    subagent_dispatch=True,
    interactive_mode=True,
    stdin_injection=True,
    image_input=True,
    file_attachments=True,
    plugins=True,
    auth_methods=("api_key", "oauth", "vertex_ai"),
    auth_files=("~/.gemini/oauth_creds.json", "~/.gemini/.env", "~/.gemini/gemini-credentials.json"),
    emits=frozenset({
        "approval_denied", "approval_granted", "approval_request", "auth_error", "context_exceeded", "cost", "error",
        "file_create", "file_patch", "file_read", "file_write", "mcp_tool_call_start", "mcp_tool_error",
        "mcp_tool_result", "message_start", "message_stop", "rate_limit_error", "session_resume", "shell_exit",
        "shell_start", "shell_stdout_delta", "step_end", "step_start", "subagent_result", "subagent_spawn",
        "text_delta", "thinking_delta", "thinking_start", "thinking_stop", "token_usage", "tool_call_ready",
        "tool_call_start", "tool_error", "tool_result", "turn_end", "turn_limit", "turn_start",
    }),
)  # fmt: skip

_STREAMS_OF_ACP: frozenset[Capability] = frozenset({"text", "thinking"})
_OF_STREAM_JSON: Mapping[str, frozenset[str]] = {
    "init": frozenset({"session_id", "model", "timestamp"}),
    "message": frozenset({"role", "content", "timestamp"}),
    "tool_use": frozenset({"tool_name", "tool_id", "timestamp"}),
    "tool_result": frozenset({"tool_id", "status", "timestamp"}),
    "error": frozenset({"severity", "message", "timestamp"}),
    "result": frozenset({"status", "stats", "timestamp"}),
}


def is_stream_json_line(value: Any) -> bool:
    """Return whether this is a line of the one-shot format."""
    line = mapping(value)
    kind = line.get("type")
    fields = _OF_STREAM_JSON.get(kind) if isinstance(kind, str) else None
    return fields is not None and fields <= line.keys()


def _sessions() -> "SessionStore":
    from agent_mux_adapters.gemini.sessions import STORE  # noqa: PLC0415  # a run does without

    return STORE


def _installation() -> "AgentInstallation":
    from agent_mux_adapters.gemini.installation import HOME  # noqa: PLC0415  # a run does without

    return HOME


ADAPTER = Adapter(
    agent="gemini",
    display_name="Gemini CLI",
    aliases=("gemini-cli",),
    executables=("gemini",),
    executable_variable="AMUX_GEMINI_EXECUTABLE",
    session_variables=(
        "GEMINI_CLI",
        "GEMINI_SESSION_ID",
        "GEMINI_CWD",
        "GEMINI_PROJECT_DIR",
        "GEMINI_PLANS_DIR",
        "GEMINI_CLI_ACTIVE_*",
        "GEMINI_CLI_IDE_*",
    ),
    tested_version="0.61.0",
    also_tested_versions=("0.36.0",),
    capabilities=CAPABILITIES,
    protocols={
        STREAM_JSON: NativeProtocol(
            name=STREAM_JSON,
            codec=GeminiStreamJsonCodec,
            streams=frozenset({"text"}),
            two_way=False,
            sniff=is_stream_json_line,
            chosen_for="one prompt in mode `yolo`, without callbacks, attachments and MCP servers of the run",
            loses=(
                "thoughts",
                "the content of read files, and the reports of sub-agents",
                "whether a written file existed before",
                "where model calls begin, and the tokens of each: their sum comes at the end",
                "retries",
                "tool inputs as they stream, and the output of commands while they run",
                "stderr of commands apart from stdout",
                "that an answer with text was cut by a token limit or blocked by a filter",
            ),
            reports_early_ends=False,
        ),
        ACP: NativeProtocol(
            name=ACP,
            codec=GeminiAcpCodec,
            streams=_STREAMS_OF_ACP,
            two_way=True,
            sniff=is_acp_line,
            chosen_for="all other runs",
            loses=(
                "tool inputs: a title stands for them",
                "cached and thinking tokens, and the tokens of each model call",
                "calls of unknown tools",
                "retries",
                "sub-agents",
                "the output of commands while they run",
                "stderr of commands apart from stdout",
                "that an answer with text was cut by a token limit or blocked by a filter",
            ),
            reports_early_ends=False,
        ),
    },
    tools_over="streamable-http",
    spawn=build_spawn_args,
    context=build_context,
    owned_flags=OWNED_FLAGS,
    repeatable_flags=frozenset({"--policy"}),
    models=offered(__file__),
    takes_any_model=False,
    install=(
        InstallMethod(kind="npm", command="npm install -g @google/gemini-cli", requires=("npm",)),
        InstallMethod(
            kind="brew", command="brew install gemini-cli", platforms=("darwin", "linux"), requires=("brew",)
        ),
    ),
    auth_guidance=GUIDANCE,
    sessions=_sessions,
    installation=_installation,
)
