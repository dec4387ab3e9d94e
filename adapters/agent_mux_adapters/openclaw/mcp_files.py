"""MCP servers as OpenClaw writes them down: `mcp.servers` in its configuration.

It puts variables in place of `${NAME}`, there as everywhere in that file.
"""

from collections.abc import Mapping
from typing import Any

from agent_mux.options import McpServer
from agent_mux_adapters._dialects.mcp_servers import read_server
from agent_mux_adapters._dialects.tolerant import text

DEFAULT_TRANSPORT = "sse"
"""Of a server with a URL that does not say: `openclaw mcp status` has it as SSE."""


def read(name: str, native: Mapping[str, Any]) -> McpServer | None:
    """A server as `openclaw mcp add` wrote it."""
    return read_server(name, {**native, "type": text(native.get("transport")) or DEFAULT_TRANSPORT})


def write(server: McpServer) -> dict[str, Any]:
    """A server as `openclaw mcp add` writes it."""
    if server.transport == "stdio":
        return {"command": server.command or "", "args": list(server.args), "env": dict(server.env)}
    return {"url": server.url or "", "transport": server.transport, "headers": dict(server.headers)}


def is_enabled(native: Mapping[str, Any]) -> bool:
    """`openclaw mcp configure --disable` writes that it is not."""
    return native.get("enabled") is not False
