"""The MCP servers in one run: their tools, and the notes for the model."""

from typing import Any

from agent_loop.context.estimation import estimate_tools
from agent_loop.errors import error_text
from agent_loop.events import HookFailed, McpBootstrapped
from agent_loop.hooks.contexts import (
    BeforeAgent,
    LoopEnded,
    SessionStart,
    ToolAfter,
    ToolGate,
    TransformSystem,
)
from agent_loop.hooks.registry import Hooks
from agent_loop.loop.run import LoopRun
from agent_loop.mcp import disclosure
from agent_loop.mcp.calls import call_hooks
from agent_loop.mcp.disclosure import LazyTool, ToolSearch
from agent_loop.mcp.host import McpHost
from agent_loop.mcp.tools import McpTool, tools_of

UNAVAILABLE = "These MCP servers are not available now, so their tools are missing; do not try to call them:"


class McpRun:
    """Adds two scopes of hooks to a run: one before all others, and one after them."""

    def __init__(self, host: McpHost, run: LoopRun) -> None:
        self._host = host
        self._run = run
        self._lazy: tuple[LazyTool, ...] = ()
        self._lazy_names: frozenset[str] = frozenset()
        self._unlocked: frozenset[str] = frozenset()
        """The unlocked tools at the last count of tokens."""
        self._search_name = disclosure.SEARCH
        self._unavailable: tuple[str, ...] = ()

    def install(self) -> None:
        """Add the scopes. Call it after all other scopes have been added."""
        first, last = Hooks(), call_hooks(self._run)
        first.on("agent:before", self._begin)
        first.on("session:start", self._disclose)
        first.on("system:transform", self._add_notes)
        first.on("tool:after", self._count_tokens)
        last.on("tool:gate", self._gate)
        last.on("agent:done", self._end)
        self._run.scopes = (first, *self._run.scopes)
        self._run.add_scope(last)

    # -- tools

    async def _begin(self, context: BeforeAgent) -> None:
        """Connect the servers and add their tools."""
        run, host = self._run, self._host
        host.use_hooks(run.loop_id, run.hooks, lambda: run.hook_fields)
        await host.connect()
        while host.hook_failures:
            hook, error = host.hook_failures.pop(0)
            problem = f"{type(error).__name__}: {error_text(error)}"
            await run.emit(HookFailed(loop_id=run.loop_id, hook=hook, error=problem))
        for outcome in host.take_outcomes():
            await run.emit(
                McpBootstrapped(
                    loop_id=run.loop_id,
                    server=outcome.server,
                    duration_ms=outcome.duration_ms,
                    tools=outcome.tools,
                    error=outcome.error,
                )
            )
        self._unavailable = tuple(
            f"- {connection.server.name}: {connection.error or 'not connected'}"
            for connection in host.connections
            if not connection.is_ready
        )
        tools, notes = tools_of(host.connections, (tool.name for tool in context.tools), run.toolset.wire)
        context.notes.extend(notes)
        context.tools = [*context.tools, *tools, *self._search_tool(context, tools)]

    def _search_tool(self, context: BeforeAgent, tools: list[McpTool]) -> list[Any]:
        """Return the search tool if a tool is lazy and the agent has no search tool of its own."""
        run, count = self._run, len(tools)
        servers = {server.name: server for server in self._host.servers}
        lazy = [
            tool
            for tool in tools
            if disclosure.is_lazy(servers[tool.mcp_origin.server], run.behavior, count)
        ]  # fmt: skip
        self._lazy = disclosure.lazy_tools(lazy, run.toolset.wire)
        self._lazy_names = frozenset(tool.name for tool in lazy)
        own = [
            tool.name
            for tool in context.tools
            if disclosure.SEARCH in {tool.name, run.toolset.wire(tool.name)}
        ]  # fmt: skip
        self._search_name = run.toolset.wire(own[0] if own else disclosure.SEARCH)
        is_added = bool(lazy) and not own and run.behavior.tool_search
        return [ToolSearch(lambda: self._lazy, run.behavior.tool_search_limit)] if is_added else []

    def _disclose(self, _context: SessionStart) -> None:
        """Leave the definitions of locked tools out of the requests of this run."""
        names = self._lazy_names
        if names:
            run = self._run
            run.toolset.is_offered = lambda name: name not in names or name in disclosure.unlocked_tools(run.state)
            self._update_tokens()

    def _count_tokens(self, _context: ToolAfter) -> None:
        if self._lazy_names and self._unlocked != disclosure.unlocked_tools(self._run.state):
            self._update_tokens()

    def _update_tokens(self) -> None:
        self._unlocked = disclosure.unlocked_tools(self._run.state)
        self._run.tool_tokens = estimate_tools(self._run.toolset.definitions())

    def _add_notes(self, context: TransformSystem) -> None:
        catalog = disclosure.catalog_of(self._lazy, self._search_name) if self._lazy else ""
        missing = "\n".join((UNAVAILABLE, *self._unavailable)) if self._unavailable else ""
        context.system = "\n\n".join(part for part in (context.system, catalog, missing) if part)

    def _end(self, _context: LoopEnded) -> None:
        self._host.drop_hooks(self._run.loop_id)

    def _gate(self, context: ToolGate) -> None:
        disclosure.gate(context, self._lazy_names, self._run.state, self._search_name)
