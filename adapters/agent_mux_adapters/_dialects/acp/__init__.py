"""The Agent Client Protocol (https://agentclientprotocol.com), shared by all adapters whose agent implements it.

An adapter describes in `AcpQuirks` where its agent differs, and gets its native protocol from `acp_protocol`.
"""

from functools import partial
from typing import Any, Literal

from agent_mux.sdk.adapter import TRANSCRIPTS_ONLY, NativeProtocol
from agent_mux_adapters._dialects.acp.codec import AcpCodec
from agent_mux_adapters._dialects.acp.outcome import code_of, failure_of, message_of
from agent_mux_adapters._dialects.acp.questions import AcpQuestion, choice_question
from agent_mux_adapters._dialects.acp.quirks import AcpQuirks, PromptOutcome
from agent_mux_adapters._dialects.acp.requests import (
    AcpRequest,
    OpenedSession,
    acp_context,
    default_settings,
    mode_request,
)
from agent_mux_adapters._dialects.acp.tool_reader import AcpCall, AcpDiff, ToolReader
from agent_mux_adapters._dialects.acp.usage import default_usage, usage_of
from agent_mux_adapters._dialects.tolerant import mapping

__all__ = [
    "AcpCall",
    "AcpCodec",
    "AcpDiff",
    "AcpQuestion",
    "AcpQuirks",
    "AcpRequest",
    "OpenedSession",
    "PromptOutcome",
    "ToolReader",
    "acp_context",
    "acp_protocol",
    "choice_question",
    "code_of",
    "default_settings",
    "default_usage",
    "failure_of",
    "is_acp_line",
    "message_of",
    "mode_request",
    "usage_of",
]

_STREAMED: frozenset[Literal["text", "tool_calls", "thinking"]] = frozenset({"text", "thinking"})


def acp_protocol(
    quirks: AcpQuirks,
    *,
    name: str = "acp",
    streams: frozenset[Literal["text", "tool_calls", "thinking"]] = _STREAMED,
    chosen_for: str = TRANSCRIPTS_ONLY,
    loses: tuple[str, ...] | None = None,
) -> NativeProtocol:
    """Return the native protocol of an agent with these quirks."""
    return NativeProtocol(
        name=name,
        codec=partial(AcpCodec, quirks=quirks),
        streams=streams,
        two_way=True,
        sniff=is_acp_line,
        chosen_for=chosen_for,
        loses=loses,
    )


def is_acp_line(value: Any) -> bool:
    """Return whether an agent that implements ACP printed this line.

    It must be an update, a permission request, or the response to `initialize`.
    """
    line = mapping(value)
    if line.get("jsonrpc") != "2.0":
        return False
    if line.get("method") in ("session/update", "session/request_permission"):
        return True
    return "agentCapabilities" in mapping(line.get("result"))
