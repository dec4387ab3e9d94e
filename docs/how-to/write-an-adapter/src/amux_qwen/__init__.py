"""Qwen Code: stream-json, one-shot and two-way, and the Agent Client Protocol."""

from typing import Any

from agent_mux.sdk.adapter import Adapter, AgentCapabilities, InstallMethod, NativeProtocol
from agent_mux.sdk.facts import Capability
from agent_mux_adapters._dialects.acp import acp_protocol
from agent_mux_adapters._dialects.stream_json.codec import ONE_SHOT, TWO_WAY
from amux_qwen.acp import QUIRKS
from amux_qwen.argv import ACP, build_context, build_spawn_args
from amux_qwen.codec import QwenCodec
from amux_qwen.outcome import AUTH_GUIDANCE

__all__ = ["ADAPTER", "CAPABILITIES"]

CAPABILITIES = AgentCapabilities(
    agent="qwen",
    can_resume=True,
    can_fork=True,
    supports_multi_turn=True,
    session_persistence="file",
    text_streaming=True,
    thinking_streaming=True,
    mcp=True,
    parallel_tool_calls=True,
    requires_tool_approval=True,
    approval_modes=("yolo", "prompt", "deny"),
    thinking=True,
    thinking_effort_levels=("low", "medium", "high", "max"),
    structured_output=True,
    skills=True,
    agents_md=True,
    subagent_dispatch=True,
    interactive_mode=True,
    stdin_injection=True,
    image_input=True,
    auth_methods=("api_key",),
    auth_files=("~/.qwen/settings.json",),
    emits=frozenset({
        "approval_denied", "approval_granted", "approval_request", "auth_error", "context_exceeded", "cost",
        "error", "file_create", "file_patch", "file_read", "file_write", "input_required",
        "mcp_tool_call_start", "mcp_tool_error", "mcp_tool_result", "message_start", "message_stop", "retry",
        "shell_exit", "shell_start", "shell_stdout_delta", "step_end", "step_start", "subagent_result",
        "subagent_spawn", "text_delta", "thinking_delta", "thinking_start", "thinking_stop", "token_usage",
        "tool_call_ready", "tool_call_start", "tool_error", "tool_input_delta", "tool_result", "turn_end",
        "turn_limit", "turn_start",
    }),
)  # fmt: skip

STREAMS: frozenset[Capability] = frozenset({"text", "thinking", "tool_calls"})
LOSES = ("the output of commands while they run", "stderr of commands apart from stdout")


def is_one_shot(line: Any) -> bool:
    """Return whether a line is one that only Qwen Code prints; other lines have the format of Claude Code, too."""
    match line:
        case {"type": "system"}:
            return "qwen_code_version" in line
        case {"type": "result", "usage": {"total_tokens": _}}:
            return True
    return False


def is_two_way(line: Any) -> bool:
    """Return whether a line is Qwen Code's response to our handshake."""
    match line:
        case {"type": "control_response", "response": response}:
            return "can_handle_can_use_tool" in str(response)
    return False


ADAPTER = Adapter(
    agent="qwen",
    display_name="Qwen Code",
    aliases=("qwen-code",),
    executables=("qwen",),
    executable_variable="AMUX_QWEN_EXECUTABLE",
    tested_version="0.24.4",
    capabilities=CAPABILITIES,
    protocols={
        TWO_WAY: NativeProtocol(
            name=TWO_WAY,
            codec=QwenCodec,
            streams=STREAMS,
            two_way=True,
            sniff=is_two_way,
            chosen_for="runs with approvals, questions or further prompts, and runs with a thinking effort",
            loses=LOSES,
        ),
        ONE_SHOT: NativeProtocol(
            name=ONE_SHOT,
            codec=QwenCodec,
            streams=STREAMS,
            two_way=False,
            sniff=is_one_shot,
            chosen_for="one prompt in mode `yolo`, without approvals or questions",
            loses=LOSES,
        ),
        ACP: acp_protocol(
            QUIRKS,
            chosen_for="runs with attachments",
            loses=("retries", "tool inputs as they stream", "stderr of commands apart from stdout"),
        ),
    },
    spawn=build_spawn_args,
    context=build_context,
    install=(InstallMethod(kind="npm", command="npm install -g @qwen-code/qwen-code", requires=("npm",)),),
    auth_guidance=AUTH_GUIDANCE,
)
