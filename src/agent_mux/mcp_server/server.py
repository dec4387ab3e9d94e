"""The tools on the wire: the official SDK carries them, everything is checked and cleaned at this one place.

A server and its runs, from the first message of the client to its last: then all runs are ended.
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
from agent_mux.mcp_server.delegations import Delegations
from agent_mux.mcp_server.limits import Limits
from agent_mux.mcp_server.requests import read_request
from agent_mux.mcp_server.tools import INSTRUCTIONS, START, TOOLS, ToolSpec
from agent_mux.redaction import redact_text
from agent_mux.sdk.registry import AdapterRegistry

LONGEST_ERROR = 2000  # characters
_BY_NAME = {tool.name: tool for tool in TOOLS}
_Context = ServerRequestContext[Any, Any]


def server_of(them: Delegations) -> Server[Any]:
    """An MCP server with the tools for these runs, and nothing else."""

    async def list_tools(_: _Context, __: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        offered = [tool for tool in TOOLS if tool.name != START or not them.limits.is_deepest]
        return types.ListToolsResult(tools=[_described(tool) for tool in offered])

    async def call_tool(context: _Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        tool = _BY_NAME.get(params.name)
        if tool is None:
            unknown = f"no tool is named {params.name[:64]!r}; there are {', '.join(_BY_NAME)}"
            raise MCPError(code=types.INVALID_PARAMS, message=sanitize(unknown))
        try:
            asked = read_request(tool.asks, params.arguments)
            return _result(await tool.act(them, asked, context.session.report_progress))
        except AgentMuxError as error:
            return _failure(error)
        except Exception as error:  # one call that fails of our own fault ends neither the server nor its runs
            logging.getLogger(LOGGER).exception("the tool %s failed", tool.name)
            broken = f"{tool.name} failed: an error of agent-mux itself ({type(error).__name__})"
            return _failure(AgentMuxError("INTERNAL", broken))

    return Server(
        "agent-mux",
        version=__version__,
        title="agent-mux",
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


def _described(tool: ToolSpec) -> types.Tool:
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


def _result(answer: msgspec.Struct) -> types.CallToolResult:
    """The answer, twice: for clients that know of structured content, and as text for those that do not."""
    plain = harmless(msgspec.to_builtins(answer))
    return types.CallToolResult(content=[types.TextContent(type="text", text=to_json(plain))], structured_content=plain)


def _failure(error: AgentMuxError) -> types.CallToolResult:
    message = sanitize(redact_text(error.message))[:LONGEST_ERROR]
    text = types.TextContent(type="text", text=f"error: {message} [{error.code}]")
    return types.CallToolResult(content=[text], is_error=True)


def harmless(value: Any) -> Any:
    """Plain values without control characters, and without what is no Unicode."""
    match value:
        case str():
            return sanitize(value).encode("utf-8", "replace").decode()
        case dict():
            return {harmless(name): harmless(item) for name, item in value.items()}
        case list() | tuple():
            return [harmless(item) for item in value]
    return value


FLUSH_WITHIN = 1.0  # seconds for what is still to be written when the client has said its last
TOO_LONG = "(a line that is too long)"

Write = Callable[[bytes], Awaitable[None]]
"""Writes all of it. Raises `OSError` when nobody reads it any more."""


class Serving:
    """Talks to one client."""

    def __init__(
        self, limits: Limits, *, config_dir: str | Path | None = None, adapters: AdapterRegistry | None = None
    ) -> None:
        """`config_dir`, `adapters`: as of `AgentMux`."""
        self._limits = limits
        self._config_dir = config_dir
        self._adapters = adapters
        self._talk: anyio.CancelScope | None = None
        self._is_ending = False
        self._them: Delegations | None = None

    async def serve(self, lines: AsyncIterable[bytes | None], write: Write) -> None:
        """Answer until the lines end, or nobody reads, or `stop`; then end all runs.

        Args:
            lines: What the client says, without line ends; None in place of a line that is too long.
            write: Takes what it is answered.

        Raises:
            AgentMuxError: AGENT_NOT_FOUND for an agent of the limits that is not registered.
        """
        client = AgentMux(config_dir=self._config_dir, adapters=self._adapters)
        async with client as mux, anyio.create_task_group() as tasks:
            self._them = them = Delegations(mux, self._limits, tasks)
            with anyio.CancelScope() as self._talk:
                if not self._is_ending:
                    await _converse(server_of(them), lines, write)
            self._is_ending = True
            tasks.cancel_scope.cancel()

    def hang_up(self) -> None:
        """The conversation is over: runs are ended in order."""
        self._is_ending = True
        if self._talk is not None:
            self._talk.cancel()

    def stop(self) -> None:
        """Hang up; when that has been done already, end the runs at once."""
        if not self._is_ending:
            self.hang_up()
        elif self._them is not None:
            self._them.kill_all()


async def _converse(server: Server[Any], lines: AsyncIterable[bytes | None], write: Write) -> None:
    # The SDK's own reader waits in a thread that nothing can wake: it would keep this process alive.
    stdin, stdout = cast("Any", _Lines(lines)), cast("Any", _Writer(write))
    try:
        with anyio.CancelScope() as scope:
            async with stdio_server(stdin, stdout) as (incoming, outgoing):
                await server.run(incoming, outgoing, server.create_initialization_options())
                scope.deadline = anyio.current_time() + FLUSH_WITHIN
    except* OSError as gone:  # nobody reads any more: that is the end of the conversation, too
        logging.getLogger(LOGGER).debug("the client is gone: %s", gone.exceptions[0])


class _Lines:
    """What `stdio_server` wants of a file that it reads: its lines, as text."""

    def __init__(self, lines: AsyncIterable[bytes | None]) -> None:
        self._lines = lines

    async def __aiter__(self) -> AsyncIterator[str]:
        async for line in self._lines:
            yield TOO_LONG if line is None else line.decode("utf-8", "replace")


class _Writer:
    """What it wants of a file that it writes."""

    def __init__(self, write: Write) -> None:
        self._write = write

    async def write(self, text: str) -> None:
        await self._write(text.encode())

    async def flush(self) -> None:
        """Nothing is kept."""
