"""MCP servers as Hermes writes them down: `mcp_servers` in its configuration.

It puts variables in place of `${NAME}`, those of its `.env` included.
"""

from collections.abc import Mapping
from typing import Any

from agent_mux.options import McpServer
from agent_mux_adapters._dialects.mcp_servers import read_server

_NO = ("false", "0", "no", "off")


def read(name: str, native: Mapping[str, Any]) -> McpServer | None:
    """A server as `hermes mcp add` wrote it. Where there is a URL, it takes no notice of a command."""
    without = {"command": None} if native.get("url") else {}
    return read_server(name, {**native, **without, "type": native.get("transport")})


def write(server: McpServer) -> dict[str, Any]:
    """A server as `hermes mcp add` writes it."""
    if server.transport == "stdio":
        return {"command": server.command, "args": list(server.args), "env": dict(server.env)}
    transport = {"transport": "sse"} if server.transport == "sse" else {}
    return {"url": server.url, "headers": dict(server.headers), **transport}


def is_enabled(native: Mapping[str, Any]) -> bool:
    """`enabled`, also as a word."""
    said = native.get("enabled", True)
    return said.strip().lower() not in _NO if isinstance(said, str) else said is not False
