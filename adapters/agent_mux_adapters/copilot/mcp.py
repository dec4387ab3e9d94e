"""MCP servers as Copilot has them. Those of one run are a file of their own, on top of the user's configuration."""

from collections.abc import Sequence
from typing import Any

from agent_mux.options import McpServer
from agent_mux_adapters._dialects.tolerant import as_json

MCP_FILE = "mcp.json"


def mcp_files(servers: Sequence[McpServer]) -> dict[str, str]:
    """The file for `--additional-mcp-config=@...`. It holds the servers' secrets."""
    if not servers:
        return {}
    return {MCP_FILE: as_json({"mcpServers": {server.name: mcp_entry(server) for server in servers}})}


def mcp_flags(servers: Sequence[McpServer], temp_dir: str) -> list[str]:
    """The flag that names the file."""
    return [f"--additional-mcp-config=@{temp_dir}/{MCP_FILE}"] if servers else []


def mcp_entry(server: McpServer) -> dict[str, Any]:
    """A server as Copilot wants it, in any of its files."""
    if server.transport == "stdio":
        program = {"command": server.command, "args": list(server.args), "env": dict(server.env)}
        return {"type": "local", **program, "tools": ["*"]}
    kind = "sse" if server.transport == "sse" else "http"
    return {"type": kind, "url": server.url, "headers": dict(server.headers), "tools": ["*"]}
