"""Connections by the official SDK. The SDK takes a second to import, so this module imports it when it connects."""

import logging
import os
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import anyio
from anyio import to_thread

from agent_loop.errors import McpConnectionError, McpServerError, error_text
from agent_loop.mcp.client import McpClient, McpToolInfo, OnProgress, Signals
from agent_loop.mcp.results import to_tool_result
from agent_loop.mcp.servers import McpServer
from agent_loop.tools.tool import ToolResult

if TYPE_CHECKING:
    import httpx2
    import mcp

MAX_PAGES = 100
"""Pages of a list of tools that are read: a server whose list never ends cannot block a run."""
HTTP_TIMEOUT = 30.0
"""Seconds to connect to a server, and to send a request."""
SSE_TIMEOUT = 300.0
"""Seconds without any data after which a stream counts as broken, unless calls may take longer."""
LOCAL_HOSTS = frozenset({"localhost", "127.0.0.1", "::1"})


@asynccontextmanager
async def connect(server: McpServer, signals: Signals) -> AsyncGenerator[McpClient, None]:
    """Connect to a server by its transport; leaving the context ends its program. See `Connector`."""
    sdk: Any = await to_thread.run_sync(import_module, "mcp")
    _silence_loggers()

    async def on_message(message: Any) -> None:
        if type(message).__name__ == "ToolListChangedNotification":
            signals.tools_changed()

    async with AsyncExitStack() as stack:
        transport = await _open_transport(server, signals, stack)
        client = sdk.Client(transport, message_handler=on_message, cache=None)
        yield SdkClient(await stack.enter_async_context(client))


def _silence_loggers() -> None:
    """Keep the SDK's records from standard error, as they may contain messages of servers. Handlers still get them."""
    for name in ("mcp", "httpx2", "client"):
        logger = logging.getLogger(name)
        if not logger.handlers:
            logger.addHandler(logging.NullHandler())


# -- transports


async def _open_transport(server: McpServer, signals: Signals, stack: AsyncExitStack) -> Any:
    """Return the transport that the SDK's client enters."""
    if server.transport == "stdio":
        stdio: Any = import_module("mcp.client.stdio")
        parameters = stdio.StdioServerParameters(
            command=server.command, args=list(server.args), env=dict(server.env), cwd=server.cwd
        )
        log = await stack.enter_async_context(_stderr_pipe(signals))
        return stdio.stdio_client(parameters, errlog=log)
    if server.transport == "sse":
        sse: Any = import_module("mcp.client.sse")
        return sse.sse_client(
            server.url,
            timeout=HTTP_TIMEOUT,
            sse_read_timeout=_read_timeout(server),
            httpx_client_factory=lambda **_: _http_client(server, signals),
        )
    http: Any = import_module("mcp.client.streamable_http")
    client = await stack.enter_async_context(_http_client(server, signals))
    return http.streamable_http_client(server.url, http_client=client)


@asynccontextmanager
async def _stderr_pipe(signals: Signals) -> AsyncIterator[Any]:
    """Provide a file for a program's standard error, and report what the program prints on it."""
    receiving, sending = os.pipe()
    os.set_blocking(receiving, False)

    def read_available() -> None:
        with suppress(BlockingIOError):
            while data := os.read(receiving, 4096):
                signals.stderr(data.decode("utf-8", "replace"))

    async def read() -> None:
        while True:
            await anyio.wait_readable(receiving)
            read_available()

    try:
        with os.fdopen(sending, "w") as log:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(read)
                try:
                    yield log
                finally:
                    tasks.cancel_scope.cancel()
    finally:
        read_available()  # the last words of a program that has just ended
        os.close(receiving)


def _read_timeout(server: McpServer) -> float:
    return max(SSE_TIMEOUT, server.timeout or 0)


def _http_client(server: McpServer, signals: Signals) -> "httpx2.AsyncClient":
    import httpx2  # noqa: PLC0415  # a dependency of the SDK

    headers = dict(server.headers)
    lock = anyio.Lock()

    class RefreshingAuth(httpx2.Auth):
        """Adds the headers to each request, and repeats a request that the server answers with 401 with new ones."""

        async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
            sent = dict(headers)
            request.headers.update(sent)
            response = yield request
            if response.status_code != httpx2.codes.UNAUTHORIZED:
                return
            async with lock:  # of concurrent requests, the first refreshes for all
                renewed: Mapping[str, str] = headers if headers != sent else await signals.refresh_headers()
            if not renewed:
                signals.unauthorized()
                return
            headers.update(renewed)
            request.headers.update(headers)
            response = yield request
            if response.status_code == httpx2.codes.UNAUTHORIZED:
                signals.unauthorized()

    is_local = urlsplit(server.url or "").hostname in LOCAL_HOSTS
    timeout = httpx2.Timeout(HTTP_TIMEOUT, read=_read_timeout(server))
    return httpx2.AsyncClient(auth=RefreshingAuth(), timeout=timeout, trust_env=not is_local)


# -- the client


class SdkClient:
    """The SDK's client as an `McpClient`."""

    def __init__(self, client: "mcp.Client") -> None:
        self._client = client

    async def list_tools(self) -> list[McpToolInfo]:
        """Return the tools of all pages."""
        tools: list[McpToolInfo] = []
        cursor: str | None = None
        for _ in range(MAX_PAGES):
            page = await self._client.list_tools(cursor=cursor)
            tools += map(_tool_info, page.tools)
            cursor = page.next_cursor
            if cursor is None:
                break
        return tools

    async def call_tool(self, name: str, arguments: dict[str, Any], on_progress: OnProgress) -> ToolResult:
        """Call a tool and convert its result."""
        from mcp import MCPError  # noqa: PLC0415
        from mcp_types import CONNECTION_CLOSED  # noqa: PLC0415  # a dependency of the SDK

        async def report(progress: float, total: float | None, message: str | None) -> None:
            await on_progress(message or (f"{progress:g}" if total is None else f"{progress:g} of {total:g}"))

        try:
            result = await self._client.call_tool(name, arguments, progress_callback=report)
        except MCPError as error:
            if error.code == CONNECTION_CLOSED:
                raise McpConnectionError(error_text(error)) from error
            raise McpServerError(error_text(error)) from error
        except (OSError, anyio.ClosedResourceError, anyio.BrokenResourceError) as error:
            raise McpConnectionError(error_text(error) or type(error).__name__) from error
        except (ValueError, RuntimeError) as error:  # a result that is none, or not that of the declared schema
            raise McpServerError(error_text(error)) from error
        return to_tool_result(result)


def _tool_info(tool: Any) -> McpToolInfo:
    hints = tool.annotations
    return McpToolInfo(
        name=tool.name,
        title=tool.title or (hints.title if hints is not None else "") or "",
        description=tool.description or "",
        input_schema=tool.input_schema,
        is_read_only=hints is not None and hints.read_only_hint is True,
        is_destructive=hints is not None and hints.destructive_hint is True,
    )
