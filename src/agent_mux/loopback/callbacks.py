"""The loopback server of one run, and how its agent reaches it."""

import json
import shlex
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from agent_mux.loopback import bridge
from agent_mux.loopback.functions import tool_functions
from agent_mux.loopback.hooks import FunctionHooks, context_warning
from agent_mux.loopback.http import LoopbackServer
from agent_mux.loopback.mcp import McpTools
from agent_mux.sdk.hooks import HookType, NativeHooks
from agent_mux.sdk.in_process import TOOL_SERVER, Tool
from agent_mux.sdk.options import McpServer

MCP_PATH, HOOKS_PATH = "/mcp", "/hooks"
ADDRESS_FILE = "callbacks.json"
"""File in the temporary directory of a run (mode 0600) with URL and token for its hooks."""
_BRIDGE = str(Path(bridge.__file__).resolve())


class RunCallbacks:
    """Serves the functions of a run to its agent."""

    def __init__(
        self,
        tools: Sequence[Tool | Callable[..., Any]] = (),
        hooks: FunctionHooks | None = None,
        native: NativeHooks | None = None,
    ) -> None:
        """Derive the schemas and bind a port.

        Args:
            tools: Functions that the agent can call as tools.
            hooks: Functions that the agent itself calls as hooks.
            native: The agent's format of these calls; required with `hooks`.

        Raises:
            ValidationError: A function cannot be a tool.
        """
        self.has_tools = bool(tools)
        self._mcp = McpTools(tool_functions(tools))
        self._hooks, self._native = hooks, native
        self._warn: Callable[[str], None] = lambda _: None
        self._server = LoopbackServer({MCP_PATH: self._mcp.answer, HOOKS_PATH: self._answer_hook})

    @property
    def token(self) -> str:
        """The bearer token, a secret of the run."""
        return self._server.token

    def report_to(self, warn: Callable[[str], None]) -> None:
        """Send warnings about failing hooks to `warn`."""
        self._warn = warn

    def mcp_server(self, transport: Literal["stdio", "streamable-http"]) -> McpServer:
        """Return the MCP server for the agent's configuration."""
        url = self._server.url(MCP_PATH)
        if transport == "streamable-http":
            headers = {"Authorization": f"Bearer {self.token}"}
            return McpServer(TOOL_SERVER, transport="streamable-http", url=url, headers=headers)
        environment = {bridge.URL: url, bridge.TOKEN: self.token}
        return McpServer(TOOL_SERVER, command=sys.executable, args=("-I", _BRIDGE), env=environment)

    def hook_commands(self, temp_dir: Path) -> dict[HookType, str]:
        """Return the command lines that the agent is to call as hooks."""
        types: Iterable[HookType] = () if self._hooks is None else sorted(self._hooks.types)
        words = (sys.executable, "-I", _BRIDGE, str(temp_dir / ADDRESS_FILE))
        return {hook_type: shlex.join((*words, hook_type)) for hook_type in types}

    @property
    def files(self) -> dict[str, str]:
        """The private files of the run that its hooks read."""
        content = {"url": self._server.url(HOOKS_PATH), "token": self.token}
        return {} if self._hooks is None else {ADDRESS_FILE: json.dumps(content)}

    async def serve(self) -> None:
        """Serve the hooks and tools of the run until the task is cancelled."""
        await self._server.serve()

    async def _answer_hook(self, message: Any) -> Any:
        message = message if isinstance(message, Mapping) else {}
        hook_type, native = message.get("type"), message.get("input")
        is_text = isinstance(message.get("type"), str)
        if self._hooks is None or self._native is None or not is_text or hook_type not in self._hooks.types:
            return {"stderr": f"no hook {hook_type} in this run", "exitCode": 1}
        call = self._native.read(hook_type, native if isinstance(native, Mapping) else {})
        outcome = await self._hooks.call(call)
        for warning in outcome.warnings:
            self._warn(warning)
        decision = outcome.decision
        response = self._native.answer(call, decision)
        if decision.context and response == self._native.answer(call, replace(decision, context=None)):
            self._warn(context_warning(call, f"the hook {call.hook_type}"))
        return {"stdout": response.stdout, "stderr": response.stderr, "exitCode": response.exit_code}
