"""Any agent that implements the Agent Client Protocol: `amux run acp --command "qwen --acp"`.

This adapter knows nothing about a particular agent; an adapter for one reports more.
"""

from agent_mux.sdk.adapter import Adapter, AgentCapabilities, InstallMethod
from agent_mux_adapters._dialects.acp import acp_protocol
from agent_mux_adapters.acp.argv import ACP, EXECUTABLE_VARIABLE, build_spawn_args, codec_context
from agent_mux_adapters.acp.quirks import QUIRKS

__all__ = ["ADAPTER", "CAPABILITIES"]

CAPABILITIES = AgentCapabilities(
    agent="acp",
    can_resume=True,
    can_fork=True,
    supports_multi_turn=True,
    session_persistence="file",
    text_streaming=True,
    thinking_streaming=True,
    mcp=True,
    parallel_tool_calls=True,
    subagent_dispatch=True,
    requires_tool_approval=True,
    approval_modes=("yolo", "prompt", "deny"),
    extra_args=True,
    set_model=True,
    set_approval_mode=("plan", "prompt", "deny", "yolo"),
    thinking=True,
    thinking_effort_levels=("low", "medium", "high", "max"),
    interactive_mode=True,
    stdin_injection=True,
    image_input=True,
    file_attachments=True,
    emits=frozenset({
        "approval_denied", "approval_granted", "approval_request", "auth_error", "context_exceeded", "cost", "debug",
        "error", "file_create", "file_patch", "file_read", "input_required", "interrupted", "mcp_tool_call_start",
        "mcp_tool_error", "mcp_tool_result", "message_start", "message_stop", "session_end", "session_resume",
        "session_start", "shell_exit", "shell_start", "shell_stdout_delta", "step_end", "step_start", "stream_fallback",
        "subagent_result", "subagent_spawn", "text_delta", "thinking_delta", "thinking_start", "thinking_stop",
        "token_usage", "tool_call_ready", "tool_call_start", "tool_error", "tool_result", "turn_end", "turn_start",
    }),
)  # fmt: skip

ADAPTER = Adapter(
    agent="acp",
    display_name="ACP agent",
    executables=(),
    takes_command=True,
    executable_variable=EXECUTABLE_VARIABLE,
    tested_version="1",
    capabilities=CAPABILITIES,
    protocols={
        ACP: acp_protocol(
            QUIRKS,
            chosen_for="every run",
            loses=(
                "retries",
                "the compaction of the context",
                "tool inputs as they stream, and with some agents the whole input: a title stands for it",
                "stderr of commands apart from stdout",
                "output schemas, runs without a session, and steering, which the protocol lacks",
            ),
        )
    },
    spawn=build_spawn_args,
    context=codec_context,
    install=(InstallMethod(kind="manual", command="install an agent that speaks ACP, and name it with --command"),),
    auth_guidance="log in with the agent's own command, or set the key of its provider",
)
