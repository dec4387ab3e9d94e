"""Any program that speaks the agent protocol, including the embedded agent.

`amux run native "prompt"` starts `amux-agent`; `amux run native --command "my-agent --flag" "prompt"` any other.
"""

from typing import TYPE_CHECKING

from agent_mux.sdk.adapter import Adapter, AgentCapabilities, InstallMethod, NativeProtocol
from agent_mux_adapters._dialects.agent_events import AgentEventsCodec, is_agent_line
from agent_mux_adapters.native.argv import (
    AGENT_EVENTS,
    EXECUTABLE_VARIABLE,
    OWNED_FLAGS,
    THINKING_KEYS,
    absolute_files,
    build_context,
    build_spawn_args,
    executables,
    named_files,
)

if TYPE_CHECKING:
    from agent_mux.sdk.installation import AgentInstallation
    from agent_mux.sdk.sessions import SessionStore

__all__ = ["ADAPTER", "CAPABILITIES"]

CAPABILITIES = AgentCapabilities(
    agent="native",
    can_resume=True,
    can_fork=True,
    supports_multi_turn=True,
    session_persistence="file",
    text_streaming=True,
    tool_call_streaming=True,
    thinking_streaming=True,
    mcp=True,
    skills=True,
    parallel_tool_calls=True,
    requires_tool_approval=True,
    approval_modes=("yolo", "prompt", "deny", "plan"),
    thinking=True,
    thinking_effort_levels=("low", "medium", "high", "max"),
    thinking_budget_tokens=True,
    thinking_override=THINKING_KEYS,
    allowed_tools=True,
    disallowed_tools=True,
    fallback_model=True,
    add_dirs=True,
    extra_args=True,
    native_options=True,
    set_model=True,
    set_approval_mode=("plan", "prompt", "deny", "yolo"),
    json_mode=True,
    structured_output=True,
    agents_md=True,
    subagent_dispatch=True,
    parallel_execution=True,
    interactive_mode=True,
    stdin_injection=True,
    image_input=True,
    file_attachments=True,
    auth_methods=("api_key",),
    # The events of the embedded agent, as recorded. Other programs may emit any event.
    emits=frozenset({
        "agentdoc_read", "approval_denied", "approval_granted", "approval_request", "auth_error", "context_compacted",
        "context_exceeded", "cost", "error", "file_create", "file_delete", "file_patch", "file_read", "file_write",
        "image_input_ack", "input_required", "mcp_tool_call_start", "mcp_tool_error", "mcp_tool_result",
        "message_start", "message_stop", "rate_limit_error", "rate_limited",
        "retry", "session_fork", "session_resume", "shell_exit", "shell_start", "shell_stderr_delta",
        "shell_stdout_delta", "skill_invoked", "skill_loaded", "step_end", "step_start", "subagent_error",
        "subagent_result", "subagent_spawn", "text_delta", "thinking_delta",
        "thinking_start", "thinking_stop", "token_usage", "tool_call_ready", "tool_call_start", "tool_error",
        "tool_input_delta", "tool_result", "turn_end", "turn_limit", "turn_start",
    }),
)  # fmt: skip


def _sessions() -> "SessionStore":
    from agent_mux_adapters.native.sessions import STORE  # noqa: PLC0415  # not needed by runs

    return STORE


def _installation() -> "AgentInstallation":
    from agent_mux_adapters.native.installation import HOME  # noqa: PLC0415  # not needed by runs

    return HOME


ADAPTER = Adapter(
    agent="native",
    display_name="agent-mux agent",
    executables=executables(),
    takes_command=True,
    executable_variable=EXECUTABLE_VARIABLE,
    session_variables=("AMUX_AGENT",),
    tested_version="1",
    capabilities=CAPABILITIES,
    protocols={
        AGENT_EVENTS: NativeProtocol(
            name=AGENT_EVENTS,
            codec=AgentEventsCodec,
            streams=frozenset({"text", "tool_calls", "thinking"}),
            two_way=True,
            sniff=is_agent_line,
            chosen_for="every run",
            loses=("whether a kind of output was streamed or complete",),
        )
    },
    spawn=build_spawn_args,
    context=build_context,
    named_files=named_files,
    absolute_files=absolute_files,
    owned_flags=OWNED_FLAGS,
    repeatable_flags=frozenset({"--skills"}),
    install=(InstallMethod(kind="pip", command='pip install "agent-mux[native]"'),),
    sessions=_sessions,
    installation=_installation,
    auth_guidance="set the API key of a provider, for example ANTHROPIC_API_KEY",
)
