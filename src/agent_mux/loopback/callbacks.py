"""The loopback server of one run, and how its agent reaches it."""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

from agent_mux.loopback import bridge
from agent_mux.loopback.functions import tool_functions
from agent_mux.loopback.http import LoopbackServer
from agent_mux.loopback.mcp import McpTools
from agent_mux.sdk.in_process import TOOL_SERVER, Tool
from agent_mux.sdk.options import McpServer

MCP_PATH = "/mcp"


class RunCallbacks:
    """Serves the functions of a run to its agent."""

    def __init__(self, tools: Sequence[Tool | Callable[..., Any]]) -> None:
        """Derive the schemas and bind a port. Raises `ValidationError` for functions that cannot be tools."""
        mcp = McpTools(tool_functions(tools))

        async def answer(_path: str, body: Any) -> Any:
            return await mcp.answer(body)

        self._server = LoopbackServer(answer, frozenset({MCP_PATH}))

    @property
    def token(self) -> str:
        """The bearer token, a secret of the run."""
        return self._server.token

    def mcp_server(self, transport: Literal["stdio", "streamable-http"]) -> McpServer:
        """Return the MCP server for the agent's configuration."""
        url = self._server.url(MCP_PATH)
        if transport == "streamable-http":
            headers = {"Authorization": f"Bearer {self.token}"}
            return McpServer(TOOL_SERVER, transport="streamable-http", url=url, headers=headers)
        environment = {bridge.URL: url, bridge.TOKEN: self.token}
        program = str(Path(bridge.__file__).resolve())
        return McpServer(TOOL_SERVER, command=sys.executable, args=("-I", program), env=environment)

    async def serve(self) -> None:
        """Serve until cancelled."""
        await self._server.serve()
