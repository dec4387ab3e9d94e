"""The MCP server: connects one client to the tools, and ends all runs when the client disconnects.

The official SDK implements the protocol. Arguments are validated, and results sanitized, here only.
"""

import logging
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any, cast

import anyio
import mcp_types as types
import msgspec
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError

from agent_mux._util.logs import LOGGER
from agent_mux._util.sanitize import sanitize, to_json
from agent_mux._util.version import __version__
from agent_mux.client import AgentMux
from agent_mux.errors import AgentMuxError
from agent_mux.mcp_server.delegated_runs import DelegatedRuns
from agent_mux.mcp_server.limits import DelegationLimits
from agent_mux.mcp_server.requests import parse_request
from agent_mux.mcp_server.tools import COMPARE, INSTRUCTIONS, START, TOOLS, ToolSpec
from agent_mux.redaction import redact_text
from agent_mux.sdk.registry import AdapterRegistry

MAX_ERROR = 2000  # characters
FLUSH_TIMEOUT = 1.0  # seconds for writing the remaining responses after the client has closed its end
TOO_LONG = "(a line that is too long)"
"""Replaces a line that exceeds the limit; it is not valid JSON, so the SDK answers it with a parse error."""
_BY_NAME = {tool.name: tool for tool in TOOLS}
_Context = ServerRequestContext[Any, Any]

Write = Callable[[bytes], Awaitable[None]]
"""Writes all bytes. Raises `OSError` when the client no longer reads."""


class DelegationServer:
    """Serves the tools to one client."""

    def __init__(
        self,
        limits: DelegationLimits,
        *,
        config_dir: str | Path | None = None,
        adapters: AdapterRegistry | None = None,
    ) -> None:
        """Create a server with these limits. `config_dir` and `adapters` are those of `AgentMux`."""
        self._limits = limits
        self._config_dir = config_dir
        self._adapters = adapters
        self._client_scope: anyio.CancelScope | None = None
        self._is_ending = False
        self._runs: DelegatedRuns | None = None

    async def serve(self, lines: AsyncIterable[bytes | None], write: Write) -> None:
        """Serve until the lines end, the client no longer reads, or `stop` is called; then end all runs.

        Args:
            lines: The messages of the client, without line ends; None in place of a line that is too long.
            write: Writes the messages for the client.

        Raises:
            AgentMuxError: AGENT_NOT_FOUND for an agent of the limits that is not registered.
        """
        client = AgentMux(config_dir=self._config_dir, adapters=self._adapters, base_dir=self._limits.roots.default)
        async with client as mux, anyio.create_task_group() as tasks:
            self._runs = runs = DelegatedRuns(mux, self._limits, tasks)
            with anyio.CancelScope() as self._client_scope:
                if not self._is_ending:
                    await _serve_client(create_server(runs), lines, write)
            self._is_ending = True
            tasks.cancel_scope.cancel()

    def disconnect(self) -> None:
        """Stop serving the client. All runs are aborted, within their grace periods."""
        self._is_ending = True
        if self._client_scope is not None:
            self._client_scope.cancel()

    def stop(self) -> None:
        """Disconnect the client; if the server is already ending, kill all runs."""
        if not self._is_ending:
            self.disconnect()
        elif self._runs is not None:
            self._runs.kill_all()


def create_server(runs: DelegatedRuns) -> Server[Any]:
    """Return an MCP server of the SDK that offers the tools for these runs."""

    async def list_tools(_: _Context, __: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        offered = [tool for tool in TOOLS if tool.name not in {START, COMPARE} or not runs.limits.is_deepest]
        return types.ListToolsResult(tools=[_to_sdk_tool(tool) for tool in offered])

    async def call_tool(context: _Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        tool = _BY_NAME.get(params.name)
        if tool is None:
            unknown = f"unknown tool {params.name[:64]!r}; available: {', '.join(_BY_NAME)}"
            raise MCPError(code=types.INVALID_PARAMS, message=sanitize(unknown))
        try:
            request = parse_request(tool.request_type, params.arguments)
            return _to_result(await tool.handler(runs, request, context.session.report_progress))
        except AgentMuxError as error:
            return _to_error_result(error)
        except Exception as error:  # a bug of ours in one call ends neither the server nor its runs
            logging.getLogger(LOGGER).exception("the tool %s failed", tool.name)
            bug = f"{tool.name} failed: an error of agent-mux itself ({type(error).__name__})"
            return _to_error_result(AgentMuxError("INTERNAL", bug))

    return Server(
        "agent-mux",
        version=__version__,
        title="agent-mux",
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


def _to_sdk_tool(tool: ToolSpec) -> types.Tool:
    return types.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=tool.input_schema,
        output_schema=tool.output_schema,
        annotations=types.ToolAnnotations(
            title=tool.title, read_only_hint=tool.is_read_only, destructive_hint=tool.is_destructive
        ),
    )


def _to_result(response: msgspec.Struct) -> types.CallToolResult:
    """Return the response as structured content and, for clients that do not support that, as text."""
    plain = sanitize_values(msgspec.to_builtins(response))
    return types.CallToolResult(content=[types.TextContent(type="text", text=to_json(plain))], structured_content=plain)


def _to_error_result(error: AgentMuxError) -> types.CallToolResult:
    message = sanitize(redact_text(error.message))[:MAX_ERROR]
    text = types.TextContent(type="text", text=f"error: {message} [{error.code}]")
    return types.CallToolResult(content=[text], is_error=True)


def sanitize_values(value: Any) -> Any:
    """Return a JSON value whose strings and keys contain no control characters and no unpaired surrogates."""
    match value:
        case str():
            return sanitize(value).encode("utf-8", "replace").decode()
        case dict():
            return {sanitize_values(name): sanitize_values(item) for name, item in value.items()}
        case list() | tuple():
            return [sanitize_values(item) for item in value]
    return value


async def _serve_client(server: Server[Any], lines: AsyncIterable[bytes | None], write: Write) -> None:
    # The SDK's own reader waits in a thread that cannot be woken, which would keep this process alive.
    stdin, stdout = cast("Any", _LineFile(lines)), cast("Any", _WriterFile(write))
    try:
        with anyio.CancelScope() as scope:
            async with stdio_server(stdin, stdout) as (incoming, outgoing):
                await server.run(incoming, outgoing, server.create_initialization_options())
                scope.deadline = anyio.current_time() + FLUSH_TIMEOUT
    except* OSError as group:  # a client that no longer reads has disconnected, too
        logging.getLogger(LOGGER).debug("the client is gone: %s", group.exceptions[0])


class _LineFile:
    """The file interface that `stdio_server` reads from: an asynchronous iterator over lines of text."""

    def __init__(self, lines: AsyncIterable[bytes | None]) -> None:
        self._lines = lines

    async def __aiter__(self) -> AsyncIterator[str]:
        async for line in self._lines:
            yield TOO_LONG if line is None else line.decode("utf-8", "replace")


class _WriterFile:
    """The file interface that `stdio_server` writes to."""

    def __init__(self, write: Write) -> None:
        self._write = write

    async def write(self, text: str) -> None:
        await self._write(text.encode())

    async def flush(self) -> None:
        """Do nothing: `write` is not buffered."""
