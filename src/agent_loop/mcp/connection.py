"""The connection to one MCP server: it is established within a time limit, lost, and established again."""

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import anyio
from anyio.abc import TaskGroup

from agent_loop.errors import McpConnectionError, McpServerError, error_text, first_error
from agent_loop.mcp.client import Connector, McpClient, McpToolInfo, OnProgress, Signals
from agent_loop.mcp.servers import McpServer
from agent_loop.tools.tool import ToolResult

MAX_STDERR = 2_000
"""Characters at the end of a program's standard error that messages about it may contain."""
MAX_REASON = 500
RETRY_AFTER = 30.0
"""Seconds after a failure before a run connects to the server again."""
_CONTROL = re.compile(r"[\x00-\x1f\x7f]+")
RefreshHeaders = Callable[[McpServer], Awaitable[Mapping[str, str]]]


@dataclass(slots=True, eq=False)
class _Attempt:
    """One connection, from its start to its end. A task of its own holds it open."""

    settled: anyio.Event = field(default_factory=anyio.Event)
    """The connection is ready, or has failed."""
    closing: anyio.Event = field(default_factory=anyio.Event)
    client: McpClient | None = None
    error: str | None = None


class McpConnection:
    """The connection to a server. `tasks` of `connect` must outlive it."""

    def __init__(self, server: McpServer, connector: Connector, refresh: RefreshHeaders) -> None:
        self.server = server
        self.tools: tuple[McpToolInfo, ...] = ()
        """The tools as listed last."""
        self.error: str | None = None
        """Why the server is not connected; None before the first attempt and while it is connected."""
        self._connector = connector
        self._refresh = refresh
        self._attempt: _Attempt | None = None
        self._tasks: TaskGroup | None = None
        self._lock = anyio.Lock()
        self._failed_at = float("-inf")
        self._is_stale = False
        self._stderr = ""
        self._is_refused = False
        """Whether the server refused the headers since the last connection was started."""

    @property
    def is_ready(self) -> bool:
        """Whether the server is connected."""
        return self._attempt is not None and self._attempt.client is not None

    @property
    def needs_bootstrap(self) -> bool:
        """Whether a new run should connect, list the tools again, or try again after a failure."""
        if self.is_ready:
            return self._is_stale
        return anyio.current_time() - self._failed_at > RETRY_AFTER

    async def bootstrap(self, tasks: TaskGroup) -> None:
        """Connect and list the tools. Raises `McpServerError` with the reason of a failure."""
        self._tasks = tasks
        async with self._lock:
            if not self.is_ready:
                await self._connect(tasks)
            elif self._is_stale and self._attempt is not None:
                await self._list_again(self._attempt)

    async def call(self, tool: str, arguments: dict[str, Any], on_progress: OnProgress) -> ToolResult:
        """Call a tool; connect again if the connection was lost. Raises `McpServerError`."""
        attempt = await self._ready_attempt()
        client = attempt.client
        if client is None:
            raise McpConnectionError(f"the MCP server {self.server.name} is not connected")
        try:
            with anyio.fail_after(self.server.timeout):
                return await client.call_tool(tool, arguments, on_progress)
        except TimeoutError:
            raise McpServerError(
                f"the MCP server {self.server.name} did not answer within {self.server.timeout:g} seconds"
            ) from None
        except McpConnectionError as error:
            self._lose(attempt, self._reason(error))
            raise McpConnectionError(
                f"the connection to the MCP server {self.server.name} was lost during the call, which may have had "
                f"its effects ({self.error}); the next call connects again"
            ) from None
        except McpServerError as error:
            raise McpServerError(self.server.without_secrets(str(error))) from None

    def close(self) -> None:
        """End the connection; the task that holds it ends the server's program."""
        if self._attempt is not None:
            self._attempt.closing.set()

    # -- internals

    async def _ready_attempt(self) -> _Attempt:
        async with self._lock:
            if not self.is_ready and self._tasks is not None:
                await self._connect(self._tasks)
        if self._attempt is None:
            raise McpConnectionError(f"the MCP server {self.server.name} is not connected")
        return self._attempt

    async def _connect(self, tasks: TaskGroup) -> None:
        attempt = self._attempt = _Attempt()
        self._stderr, self._is_refused = "", False
        tasks.start_soon(self._hold, attempt)
        try:
            with anyio.fail_after(self.server.connect_timeout):
                await attempt.settled.wait()
        except TimeoutError:
            attempt.error = self._late()
        except BaseException:
            attempt.closing.set()
            raise
        self.error = attempt.error
        if attempt.error is not None:
            attempt.client = None
            attempt.closing.set()
            self._failed_at = anyio.current_time()
            raise McpServerError(attempt.error)

    async def _hold(self, attempt: _Attempt) -> None:
        """Connect, then keep the connection open until it is closed. Failures become `attempt.error`."""
        signals = Signals(
            tools_changed=self._mark_stale,
            refresh_headers=self._headers,
            unauthorized=self._mark_refused,
            stderr=self._add_stderr,
        )
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._cancel_when_closing, attempt, tasks)
                async with self._connector(self.server, signals) as client:
                    await self._list(client)
                    attempt.client = client
                    attempt.settled.set()
                    await anyio.sleep_forever()
        except Exception as error:  # noqa: BLE001  # a failing server affects no other
            reason = self._reason(first_error(error))
            if attempt.settled.is_set():
                self._lose(attempt, reason)
            attempt.error = attempt.error or reason
        finally:
            attempt.client = None
            attempt.settled.set()

    async def _cancel_when_closing(self, attempt: _Attempt, tasks: TaskGroup) -> None:
        await attempt.closing.wait()
        tasks.cancel_scope.cancel()

    async def _list_again(self, attempt: _Attempt) -> None:
        """List the tools of a connected server. Raises `McpServerError`; the connection then counts as lost."""
        try:
            with anyio.fail_after(self.server.connect_timeout):
                if attempt.client is not None:
                    await self._list(attempt.client)
        except Exception as error:  # noqa: BLE001  # a failing server affects no other
            reason = self._late() if isinstance(error, TimeoutError) else self._reason(first_error(error))
            self._lose(attempt, reason)
            self._failed_at = anyio.current_time()
            raise McpServerError(reason) from None

    async def _list(self, client: McpClient) -> None:
        self._is_stale = False
        self.tools = tuple(await client.list_tools())

    def _lose(self, attempt: _Attempt, reason: str) -> None:
        attempt.client = None
        attempt.closing.set()
        self.error = reason

    def _mark_stale(self) -> None:
        self._is_stale = True

    def _mark_refused(self) -> None:
        self._is_refused = True

    async def _headers(self) -> Mapping[str, str]:
        return await self._refresh(self.server)

    def _add_stderr(self, text: str) -> None:
        self._stderr = (self._stderr + text)[-MAX_STDERR:]

    def _late(self) -> str:
        return self._with_stderr(f"it did not list its tools within {self.server.connect_timeout:g} seconds")

    def _reason(self, error: Exception) -> str:
        text = error_text(error) or type(error).__name__
        if isinstance(error, FileNotFoundError):
            text = f"the program {self.server.command!r} or its directory does not exist"
        if self._is_refused:
            text = f"the server answered 401 (unauthorized); set its headers, or a hook oauth:refresh ({text})"
        return self._with_stderr(text)

    def _with_stderr(self, text: str) -> str:
        """Return a message on one line, with the end of the program's standard error and without secrets."""
        if self._stderr.strip():
            text = f"{text}; the program printed: ...{self._stderr.strip()[-MAX_REASON:]}"
        return _CONTROL.sub(" ", self.server.without_secrets(text))[: 2 * MAX_REASON]
