"""MCP servers in native formats.

Most agents use `{"type": "stdio", "command": ...}` or `{"type": "http", "url": ...}`; ACP uses lists of names and
values for variables and headers.
"""

from collections.abc import Mapping
from typing import Any, Literal

from agent_mux.sdk.options import McpServer
from agent_mux_adapters._dialects.tolerant import mapping, text

__all__ = ["read_server", "write_acp_server", "write_server"]


def write_server(server: McpServer) -> dict[str, Any]:
    """Return the native entry of a server."""
    if server.transport == "stdio":
        return {"type": "stdio", "command": server.command, "args": list(server.args), "env": dict(server.env)}
    kind = "sse" if server.transport == "sse" else "http"
    return {"type": kind, "url": server.url, "headers": dict(server.headers)}


def write_acp_server(server: McpServer) -> dict[str, Any]:
    """Return a server as `session/new` of ACP takes it."""
    if server.transport == "stdio":
        env = _pairs(server.env)
        return {"name": server.name, "command": server.command, "args": list(server.args), "env": env}
    kind = "sse" if server.transport == "sse" else "http"
    return {"type": kind, "name": server.name, "url": server.url, "headers": _pairs(server.headers)}


def _pairs(values: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"name": name, "value": value} for name, value in values.items()]


def read_server(name: str, native: Mapping[str, Any]) -> McpServer | None:
    """Parse a native entry; its type may be missing.

    Return None when the entry has neither a command nor a URL.
    """
    command, url = text(native.get("command")), text(native.get("url"))
    if command:
        args = native.get("args")
        arguments = tuple(map(str, args)) if isinstance(args, list) else ()
        return McpServer(name=name, command=command, args=arguments, env=string_map(native.get("env")))
    if not url:
        return None
    transport: Literal["sse", "streamable-http"] = "sse" if native.get("type") == "sse" else "streamable-http"
    return McpServer(name=name, transport=transport, url=url, headers=string_map(native.get("headers")))


def string_map(native: Any) -> dict[str, str]:
    """Return the entries of a JSON object with keys and values as strings."""
    return {str(key): str(value) for key, value in mapping(native).items()}
