"""Tools of MCP servers as tools of the agent."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from agent_loop.mcp.client import McpToolInfo
from agent_loop.mcp.connection import McpConnection
from agent_loop.tools.tool import McpOrigin, Output, Risk, ToolContext, ToolKind

MAX_DESCRIPTION = 8_000
"""Characters of a description that the model gets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class McpTool:
    """A tool of an MCP server. Its name is `server__tool`; names that providers refuse have a derived wire name."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    mcp_origin: McpOrigin
    label: str = ""
    kind: ToolKind = "other"
    risk: Risk = "medium"
    read_only: bool = False
    connection: McpConnection = field(repr=False)

    async def execute(self, arguments: dict[str, Any], context: ToolContext) -> Output:
        """Call the tool on its server. Raises `McpServerError`."""
        return await self.connection.call(self.mcp_origin.tool, arguments, context.progress)


def mcp_tool(info: McpToolInfo, connection: McpConnection) -> McpTool:
    """Return a listed tool as a tool of the agent."""
    server = connection.server
    is_read_only = info.is_read_only and server.honor_read_only
    return McpTool(
        name=server.tool_name(info.name),
        description=(info.description or info.title or info.name)[:MAX_DESCRIPTION],
        parameters=_parameters(info.input_schema),
        mcp_origin=McpOrigin(server.name, info.name),
        label=f"{info.title or info.name} ({server.name})",
        kind="read" if is_read_only else "other",
        risk="low" if is_read_only else "high" if info.is_destructive else "medium",
        read_only=is_read_only,
        connection=connection,
    )


def tools_of(
    connections: Iterable[McpConnection], taken: Iterable[str], wire: Callable[[str], str]
) -> tuple[list[McpTool], list[str]]:
    """Return the tools of all connected servers, and a note for each that has no unique name.

    `taken` are the names of other tools; `wire` returns the wire name of a tool.
    """
    tools: list[McpTool] = []
    notes: list[str] = []
    used = {name for each in taken for name in (each, wire(each))}
    for connection in connections:
        if not connection.is_ready:
            continue
        for info in connection.tools:
            tool = mcp_tool(info, connection)
            names = {tool.name, wire(tool.name)}
            if not info.name or names & used:
                notes.append(
                    f"the tool {info.name!r} of the MCP server {connection.server.name} is left out: another tool has "
                    f"the name {tool.name!r}"
                )
                continue
            used |= names
            tools.append(tool)
    return tools, notes


def _parameters(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a schema of type object, which providers require."""
    if schema.get("type") == "object":
        return schema if "properties" in schema else {**schema, "properties": {}}
    return {"type": "object", "properties": {}, **{key: value for key, value in schema.items() if key != "type"}}
