"""What the agent needs of a connected MCP server. `sdk` implements it; tests may replace it."""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol

from agent_loop.mcp.servers import McpServer
from agent_loop.tools.tool import ToolResult

OnProgress = Callable[[str], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class McpToolInfo:
    """A tool as its server lists it."""

    name: str
    title: str = ""
    description: str = ""
    input_schema: Mapping[str, Any] = field(default_factory=dict)
    is_read_only: bool = False
    """The server declares that calls change nothing."""
    is_destructive: bool = False
    """The server declares that calls may destroy something."""


class McpClient(Protocol):
    """One connected server. Its methods are called from several tasks at a time."""

    async def list_tools(self) -> list[McpToolInfo]:
        """Return all tools of the server."""
        ...

    async def call_tool(self, name: str, arguments: dict[str, Any], on_progress: OnProgress) -> ToolResult:
        """Call a tool. Raises `McpServerError`, and `McpConnectionError` if the connection is lost."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Signals:
    """What a connected server reports besides its answers."""

    tools_changed: Callable[[], None]
    """The server has other tools now."""
    refresh_headers: Callable[[], Awaitable[Mapping[str, str]]]
    """The server answered 401. Return new headers, empty if there are none."""
    unauthorized: Callable[[], None]
    """The server answered 401, and there are no new headers."""
    stderr: Callable[[str], None]
    """The program of the server printed this on its standard error."""


Connector = Callable[[McpServer, Signals], AbstractAsyncContextManager[McpClient]]
"""Connects to a server for the duration of a context."""
