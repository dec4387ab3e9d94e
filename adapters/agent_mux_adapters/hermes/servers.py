"""MCP servers as the gateway tells of them: their state, and which of them a tool belongs to."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from agent_mux.facts import Fact, Note
from agent_mux_adapters._dialects.tolerant import rows, text

PREFIX = "mcp__"
_UNTIDY = re.compile(r"[^A-Za-z0-9_]")


class Servers:
    """The MCP servers of a run. In the names of tools, whatever is no letter, digit or underscore is one."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._names = {_UNTIDY.sub("_", name): name for name in names}
        self._failed: set[str] = set()
        self.are_waiting = False
        """Some were configured and nobody began to start them."""

    def seen(self, status: Any) -> tuple[Fact, ...]:
        """`mcp_servers` of `session.info`. One that failed is told once."""
        servers = rows(status)
        self._names.update((_UNTIDY.sub("_", name), name) for server in servers if (name := text(server.get("name"))))
        self.are_waiting = any(server.get("status") == "configured" for server in servers)
        return tuple(fact for server in servers if server.get("status") == "failed" for fact in self._failure(server))

    def is_mcp(self, tool: str) -> bool:
        """The tool is one of an MCP server."""
        return tool.startswith(PREFIX)

    def split(self, tool: str) -> tuple[str, str]:
        """The server and its tool."""
        rest = tool.removeprefix(PREFIX)
        known = [name for name in self._names if rest.startswith(f"{name}__")]
        if known:
            longest = max(known, key=len)
            return self._names[longest], rest.removeprefix(f"{longest}__")
        server, _, name = rest.partition("__")
        return server, name

    def _failure(self, server: Mapping[str, Any]) -> tuple[Fact, ...]:
        name = text(server.get("name"))
        if name in self._failed:
            return ()
        self._failed.add(name)
        return (Note(f"hermes could not start the MCP server {name}: {text(server.get('error'))}", "warn"),)
