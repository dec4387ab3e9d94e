"""The MCP servers of one agent: connected in parallel, each with its own failures, and ended together."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import anyio
from anyio.abc import TaskGroup

from agent_loop.errors import McpServerError
from agent_loop.hooks.contexts import McpBootstrapEnd, McpBootstrapStart, McpConnected, McpFailed, OAuthRefresh
from agent_loop.hooks.registry import Chain, Hooks
from agent_loop.mcp.client import Connector
from agent_loop.mcp.connection import McpConnection
from agent_loop.mcp.sdk import connect
from agent_loop.mcp.servers import McpServer, check_servers


@dataclass(frozen=True, slots=True, kw_only=True)
class Bootstrap:
    """The outcome of connecting to one server."""

    server: str
    duration_ms: int
    tools: int = 0
    error: str | None = None


class McpHost:
    """The connections of an agent. They live as long as the context `open`."""

    def __init__(
        self,
        servers: Sequence[McpServer],
        *,
        connector: Connector | None,
        monotonic: Callable[[], float],
        idle_scopes: Sequence[Hooks],
    ) -> None:
        """`idle_scopes` are the hooks outside of runs. Raises `ConfigurationError` for invalid servers."""
        self.servers = check_servers(servers)
        self._connector = connector or connect
        self._monotonic = monotonic
        self._idle_hooks = Chain(idle_scopes, self._hook_failed)
        self._run_hooks: dict[str, tuple[Chain, Callable[[], Mapping[str, Any]]]] = {}
        """The hooks of the active runs and their fields, by loop id: parallel loops share the host."""
        self.connections: tuple[McpConnection, ...] = ()
        self._tasks: TaskGroup | None = None
        self._outcomes: list[Bootstrap] = []
        self.hook_failures: list[tuple[str, Exception]] = []
        """Hooks that failed outside of runs; the next run reports and removes them."""
        self._locks: dict[str, anyio.Lock] = {}

    @property
    def is_open(self) -> bool:
        """Whether servers can be connected."""
        return self._tasks is not None

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Allow connections within this context, and end all of them at its end. An open host stays as it is."""
        if self.is_open:
            yield
            return
        raised: BaseException | None = None
        async with anyio.create_task_group() as tasks:
            self._tasks = tasks
            self.connections = tuple(McpConnection(each, self._connector, self._refresh) for each in self.servers)
            self._locks = {each.name: anyio.Lock() for each in self.servers}
            try:
                yield
            except anyio.get_cancelled_exc_class():
                raise
            except BaseException as error:  # noqa: BLE001  # raised below, so that the task group does not wrap it
                raised = error
            finally:
                self._tasks = None
                tasks.cancel_scope.cancel()  # the SDK ends programs under a shield, within bounded time
        self.connections = ()
        self._run_hooks.clear()
        if raised is not None:
            raise raised

    def warm_up(self) -> None:
        """Start to connect all servers in the background. The host must be open."""
        if self._tasks is not None:
            self._tasks.start_soon(self.connect)

    async def connect(self) -> None:
        """Connect to all servers that are not connected, in parallel. Failures are outcomes and do not raise."""
        async with anyio.create_task_group() as group:
            for connection in self.connections:
                group.start_soon(self._bootstrap, connection)

    def take_outcomes(self) -> list[Bootstrap]:
        """Return the outcomes since the last call."""
        outcomes, self._outcomes = self._outcomes, []
        return outcomes

    def use_hooks(self, loop_id: str, hooks: Chain, fields: Callable[[], Mapping[str, Any]]) -> None:
        """Fire the hooks of a run, with its fields, until `drop_hooks` or until a later run adds its own."""
        self._run_hooks[loop_id] = hooks, fields

    def drop_hooks(self, loop_id: str) -> None:
        """Stop firing the hooks of a run. Those of the latest active run fire instead, or those outside of runs."""
        self._run_hooks.pop(loop_id, None)

    # -- internals

    async def _bootstrap(self, connection: McpConnection) -> None:
        server = connection.server
        async with self._locks[server.name]:  # a run waits for the warm-up instead of repeating it
            if self._tasks is None or not connection.needs_bootstrap:
                return
            await self._fire("mcp:bootstrap:start", McpBootstrapStart, server=server.name, transport=server.transport)
            started = self._monotonic()
            error: str | None = None
            try:
                await connection.bootstrap(self._tasks)
            except McpServerError as failure:
                error = str(failure)
            duration_ms = round((self._monotonic() - started) * 1000)
            tools = len(connection.tools) if error is None else 0
            self._outcomes.append(Bootstrap(server=server.name, duration_ms=duration_ms, tools=tools, error=error))
            await self._fire(
                "mcp:bootstrap:end",
                McpBootstrapEnd,
                server=server.name,
                duration_ms=duration_ms,
                ok=error is None,
                tool_count=tools,
                error=error,
            )
            if error is None:
                names = tuple(tool.name for tool in connection.tools)
                await self._fire("mcp:connect", McpConnected, server=server.name, tools=names)
            else:
                await self._fire("mcp:error", McpFailed, server=server.name, error=error)

    async def _refresh(self, server: McpServer) -> Mapping[str, str]:
        context = await self._fire("oauth:refresh", OAuthRefresh, server=server.name, url=server.url or "")
        headers: Mapping[str, str] = context.headers
        return headers

    async def _fire(self, name: str, kind: Callable[..., Any], **fields: Any) -> Any:
        hooks, hook_fields = next(reversed(self._run_hooks.values()), (self._idle_hooks, dict))
        context = kind(**fields, **hook_fields())
        await hooks.fire(name, context)
        return context

    async def _hook_failed(self, name: str, error: Exception) -> None:
        self.hook_failures.append((name, error))
