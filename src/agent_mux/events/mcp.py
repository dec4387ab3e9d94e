"""MCP tool calling events. Source: agent-events spec, section 12."""

from typing import Any, ClassVar, Literal

from agent_mux.events.base import BaseEvent


class McpToolCallStartEvent(BaseEvent, frozen=True):
    """A tool of an MCP server is called. Source: agent-events spec, section 12.1."""

    type: ClassVar[Literal["mcp_tool_call_start"]] = "mcp_tool_call_start"

    tool_call_id: str
    """Shared by the events of this call."""
    server: str
    """The MCP server."""
    tool_name: str
    """The tool within the server."""
    input: Any
    """The complete parsed input."""


class McpToolResultEvent(BaseEvent, frozen=True):
    """The MCP tool succeeded. Source: agent-events spec, section 12.1."""

    type: ClassVar[Literal["mcp_tool_result"]] = "mcp_tool_result"

    tool_call_id: str
    """The call."""
    server: str
    """The MCP server."""
    tool_name: str
    """The tool."""
    output: Any
    """What the tool gave the model."""


class McpToolErrorEvent(BaseEvent, frozen=True):
    """The MCP tool or its transport failed. Source: agent-events spec, section 12.1."""

    type: ClassVar[Literal["mcp_tool_error"]] = "mcp_tool_error"

    tool_call_id: str
    """The call."""
    server: str
    """The MCP server."""
    tool_name: str
    """The tool."""
    error: str
    """What went wrong."""
