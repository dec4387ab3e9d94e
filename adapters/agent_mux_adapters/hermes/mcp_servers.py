"""MCP servers of Hermes: their entries in `mcp_servers` of its configuration, and their state in a run.

Hermes replaces `${NAME}` in an entry by the variable, those of its `.env` file included.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from agent_mux.sdk.facts import Fact, Note
from agent_mux.sdk.options import McpServer
from agent_mux_adapters._dialects.mcp_servers import read_server
from agent_mux_adapters._dialects.tolerant import rows, text

TOOL_PREFIX = "mcp__"
_INVALID_IN_NAMES = re.compile(r"[^A-Za-z0-9_]")
_FALSE_WORDS = ("false", "0", "no", "off")


def parse_server(name: str, native: Mapping[str, Any]) -> McpServer | None:
    """Parse an entry that `hermes mcp add` wrote. Hermes ignores `command` where there is a `url`."""
    without = {"command": None} if native.get("url") else {}
    return read_server(name, {**native, **without, "type": native.get("transport")})


def format_server(server: McpServer) -> dict[str, Any]:
    """Return the entry that `hermes mcp add` writes for a server."""
    if server.transport == "stdio":
        return {"command": server.command, "args": list(server.args), "env": dict(server.env)}
    transport = {"transport": "sse"} if server.transport == "sse" else {}
    return {"url": server.url, "headers": dict(server.headers), **transport}


def is_enabled(native: Mapping[str, Any]) -> bool:
    """Return whether Hermes starts the server: `enabled` may be a boolean or a word such as "off"."""
    enabled = native.get("enabled", True)
    return enabled.strip().lower() not in _FALSE_WORDS if isinstance(enabled, str) else enabled is not False


def is_mcp_tool(tool: str) -> bool:
    """Return whether the name is one of a tool of an MCP server."""
    return tool.startswith(TOOL_PREFIX)


class HermesMcpServers:
    """The MCP servers of one run.

    In the names of tools, Hermes replaces every character of a server's name but letters, digits and underscores by an
    underscore.
    """

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._names = {_INVALID_IN_NAMES.sub("_", name): name for name in names}
        self._failed: set[str] = set()

    def update(self, status: Any) -> tuple[Fact, ...]:
        """Read `mcp_servers` of a `session.info`. Return a note for each server that failed, once."""
        servers = rows(status)
        names = [text(server.get("name")) for server in servers]
        self._names.update((_INVALID_IN_NAMES.sub("_", name), name) for name in names if name)
        return tuple(fact for server in servers if server.get("status") == "failed" for fact in self._failure(server))

    def split_tool_name(self, tool: str) -> tuple[str, str]:
        """Return the server that a tool belongs to, and the server's own name for the tool."""
        rest = tool.removeprefix(TOOL_PREFIX)
        matching = [name for name in self._names if rest.startswith(f"{name}__")]
        if matching:
            longest = max(matching, key=len)
            return self._names[longest], rest.removeprefix(f"{longest}__")
        server, _, name = rest.partition("__")
        return server, name

    def _failure(self, server: Mapping[str, Any]) -> tuple[Fact, ...]:
        name = text(server.get("name"))
        if name in self._failed:
            return ()
        self._failed.add(name)
        return (Note(f"hermes could not start the MCP server {name}: {text(server.get('error'))}", "warn"),)
