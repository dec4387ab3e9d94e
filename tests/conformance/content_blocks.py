"""Scripts of content blocks, as most agents have them, and how calls of tools are named."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tests.conformance.truth import Said

from agent_mux.events import AgentEvent, McpToolCallStartEvent, SubagentSpawnEvent, ToolCallReadyEvent

Called = Callable[[str, Any], Iterator[Any]]
"""What is to be seen of a call with this name and this input: mostly once `(name, input)`."""


def as_named(name: str, given: Any) -> Iterator[Any]:
    """As the model calls it."""
    yield name, given


def block_parts(step: Mapping[str, Any], called: Called = as_named) -> Iterator[Said]:
    """Texts, thoughts, and what is to be seen of the calls."""
    for block in step.get("blocks") or ():
        match block:
            case {"type": "text", "text": str(text)} if text:
                yield Said("text", text)
            case {"type": "thinking", "thinking": str(thinking)} if thinking:
                yield Said("thought", thinking)
            case {"type": "tool_use", "name": name}:
                yield from (Said("call", what) for what in called(name, block.get("input", {})))


def named_call(event: AgentEvent, *, mcp: str = "mcp__{server}__{tool}", delegate: str) -> Said | None:
    """The call that an event tells of, by the names that the model knows: of a server's tool, and of delegating."""
    match event:
        case ToolCallReadyEvent():
            return Said("call", (event.tool_name, event.input))
        case McpToolCallStartEvent():
            return Said("call", (mcp.format(server=event.server, tool=event.tool_name), event.input))
        case SubagentSpawnEvent():
            return Said("call", (delegate, {"prompt": event.prompt}))
    return None
