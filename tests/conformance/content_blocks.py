"""Scripts of content blocks, which most agents use, and the names of tool calls in them."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tests.conformance.script_comparison import TranscriptPart

from agent_mux.events import AgentEvent, McpToolCallStartEvent, SubagentSpawnEvent, ToolCallReadyEvent

CallParts = Callable[[str, Any], Iterator[Any]]
"""Yields what the events of a call with this name and input contain: usually one `(name, input)`."""


def unchanged_call(name: str, given: Any) -> Iterator[Any]:
    """Yield the call as the model makes it."""
    yield name, given


def block_parts(step: Mapping[str, Any], call_parts: CallParts = unchanged_call) -> Iterator[TranscriptPart]:
    """Yield the texts, thinking and calls of a step."""
    for block in step.get("blocks") or ():
        match block:
            case {"type": "text", "text": str(text)} if text:
                yield TranscriptPart("text", text)
            case {"type": "thinking", "thinking": str(thinking)} if thinking:
                yield TranscriptPart("thinking", thinking)
            case {"type": "tool_use", "name": name}:
                yield from (TranscriptPart("call", content) for content in call_parts(name, block.get("input", {})))


def named_call(event: AgentEvent, *, mcp: str = "mcp__{server}__{tool}", delegate: str) -> TranscriptPart | None:
    """Return the call of an event under the name that the model uses; None for other events.

    `mcp` formats the name of an MCP tool, `delegate` is the name of the delegation tool.
    """
    match event:
        case ToolCallReadyEvent():
            return TranscriptPart("call", (event.tool_name, event.input))
        case McpToolCallStartEvent():
            return TranscriptPart("call", (mcp.format(server=event.server, tool=event.tool_name), event.input))
        case SubagentSpawnEvent():
            return TranscriptPart("call", (delegate, {"prompt": event.prompt}))
    return None
