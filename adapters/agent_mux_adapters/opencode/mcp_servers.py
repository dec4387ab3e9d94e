"""MCP servers as OpenCode has them: `local` ones with a list of words, `remote` ones whose transport it finds out."""

from collections.abc import Mapping
from typing import Any

from agent_mux.options import McpServer
from agent_mux_adapters._dialects.mcp_servers import string_map
from agent_mux_adapters._dialects.tolerant import text


def write_server(server: McpServer) -> dict[str, Any]:
    """A server, as it wants it."""
    if server.transport == "stdio":
        command = [server.command, *server.args]
        return {"type": "local", "command": command, "environment": dict(server.env), "enabled": True}
    return {"type": "remote", "url": server.url, "headers": dict(server.headers), "enabled": True}


def read_server(name: str, native: Mapping[str, Any]) -> McpServer | None:
    """A server, as it was written down. None where it only switches off one of a file that counts less."""
    words = native.get("command")
    if isinstance(words, list) and words:
        program, *args = map(str, words)
        return McpServer(name=name, command=program, args=tuple(args), env=string_map(native.get("environment")))
    url = text(native.get("url"))
    if not url:
        return None
    return McpServer(name=name, transport="streamable-http", url=url, headers=string_map(native.get("headers")))


def is_enabled(native: Mapping[str, Any]) -> bool:
    """It says nothing else."""
    return native.get("enabled") is not False
