"""The adapter of Cursor's CLI: stream-json in print mode.

Written from the documented format, because the CLI cannot be run without an account.
"""

from typing import TYPE_CHECKING

from agent_mux.sdk.adapter import Adapter, AgentCapabilities, InstallMethod, NativeProtocol
from agent_mux_adapters._models import offered
from agent_mux_adapters.cursor.argv import OWNED_FLAGS, build_spawn_args
from agent_mux_adapters.cursor.codec import STREAM_JSON, CursorCodec, is_stream_json
from agent_mux_adapters.cursor.models import LISTING
from agent_mux_adapters.cursor.outcome import AUTH_GUIDANCE

if TYPE_CHECKING:
    from agent_mux.sdk.installation import AgentInstallation

CAPABILITIES = AgentCapabilities(
    agent="cursor",
    can_resume=True,
    session_persistence="sqlite",
    text_streaming=True,
    thinking_streaming=True,
    parallel_tool_calls=True,
    approval_modes=("yolo", "deny"),
    extra_args=True,
    skills=True,
    agents_md=True,
    subagent_dispatch=True,
    file_attachments=True,
    auth_methods=("api_key", "auth_token", "oauth"),
    auth_files=("~/.config/cursor/auth.json",),
    emits=frozenset({
        "approval_denied", "approval_granted", "approval_request", "auth_error", "cost", "crash", "debug", "error",
        "file_create", "file_delete", "file_patch", "file_read", "file_write", "image_output", "log",
        "mcp_tool_call_start", "mcp_tool_error", "mcp_tool_result", "message_start", "message_stop",
        "rate_limit_error", "retry", "session_end", "session_start", "shell_exit", "shell_start",
        "shell_stderr_delta", "shell_stdout_delta", "step_end", "step_start", "stream_fallback", "subagent_error",
        "subagent_result", "subagent_spawn", "text_delta", "thinking_delta", "thinking_start", "thinking_stop",
        "token_usage", "tool_call_ready", "tool_call_start", "tool_error", "tool_result", "turn_end", "turn_start",
    }),
)  # fmt: skip


def _installation() -> "AgentInstallation":
    from agent_mux_adapters.cursor.installation import HOME  # noqa: PLC0415  # a run does without

    return HOME


ADAPTER = Adapter(
    agent="cursor",
    display_name="Cursor",
    aliases=("cursor-agent",),
    executables=("cursor-agent",),
    executable_variable="AMUX_CURSOR_EXECUTABLE",
    session_variables=(
        "CURSOR_AGENT",
        "CURSOR_SESSION_*",
        "CURSOR_CONVERSATION_ID",
    ),
    tested_version="",
    capabilities=CAPABILITIES,
    protocols={
        STREAM_JSON: NativeProtocol(
            name=STREAM_JSON,
            codec=CursorCodec,
            streams=frozenset({"text", "thinking"}),
            two_way=False,
            sniff=is_stream_json,
            chosen_for="every run",
            loses=(
                "tool inputs as they stream",
                "the output of commands while they run",
                "cost",
                "questions: they are skipped",
            ),
        )
    },
    spawn=build_spawn_args,
    owned_flags=OWNED_FLAGS,
    models=offered(__file__),
    model_listing=LISTING,
    installation=_installation,
    install=(
        InstallMethod(
            kind="curl",
            command="curl https://cursor.com/install -fsS | bash",
            platforms=("linux", "darwin"),
            requires=("curl", "bash"),
        ),
    ),
    auth_guidance=AUTH_GUIDANCE,
)
