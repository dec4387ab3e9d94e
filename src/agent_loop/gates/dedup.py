"""A call like the last one of its tool is answered with the last result. Source: zidane, `dedupTools`.

Only for tools without side effects whose output depends on their arguments alone. Of each tool only the latest call is
remembered. What is remembered is what the tool returned, before hooks changed it: they change the replay as well.
"""

from collections.abc import Callable, Mapping
from typing import Any

from agent_loop.hooks import Hooks, Middleware, ToolRun
from agent_loop.hooks.contexts import LoopOver, ToolGate
from agent_loop.messages import ToolCall
from agent_loop.tools.tool import ToolResult

Hasher = Callable[[Mapping[str, Any]], str]
"""Arguments that mean the same have the same hash."""


class DedupMemory:
    """Of all sessions of an agent: the latest call of each tool, as hash and result."""

    def __init__(self) -> None:
        self._latest: dict[tuple[str, str], tuple[str, ToolResult]] = {}

    def recall(self, session_id: str, tool: str, hashed: str) -> ToolResult | None:
        """What came of the latest call, where it had this hash."""
        known = self._latest.get((session_id, tool))
        return known[1] if known is not None and known[0] == hashed else None

    def remember(self, session_id: str, tool: str, hashed: str, result: ToolResult) -> None:
        """This was the latest call."""
        self._latest[session_id, tool] = (hashed, result)

    def forget(self, session_id: str) -> None:
        """The session is over."""
        self._latest = {key: known for key, known in self._latest.items() if key[0] != session_id}


class _Dedup:
    name = "dedup-tools"

    def __init__(self, hashers: Mapping[str, Hasher], memory: DedupMemory) -> None:
        self._hashers = dict(hashers)
        self._memory = memory
        self._running: dict[str, tuple[str, str]] = {}
        """Call -> session and hash, of the calls that this gate let through."""

    def install(self, hooks: Hooks) -> None:
        hooks.on("tool:gate", self._gate)
        hooks.wrap_tool_call(self._watch)
        hooks.on("agent:done", self._forget)

    def _gate(self, context: ToolGate) -> None:
        hasher = self._hashers.get(context.name)
        if hasher is None or context.block or context.result is not None:
            return
        hashed = hasher(context.arguments)
        context.result = self._memory.recall(context.session_id, context.name, hashed)
        if context.result is None:
            self._running[context.call_id] = (context.session_id, hashed)

    async def _watch(self, call: ToolCall, run: ToolRun) -> ToolResult:
        session_id, hashed = self._running.pop(call.id, (None, ""))
        result = await run(call)
        if session_id is not None and not result.is_error:
            self._memory.remember(session_id, call.name, hashed, result)
        return result

    def _forget(self, context: LoopOver) -> None:
        """Calls that were never run, because their arguments were no good."""
        self._running = {call: known for call, known in self._running.items() if known[0] != context.session_id}


def dedup(hashers: Mapping[str, Hasher], memory: DedupMemory | None = None) -> Middleware:
    """Answer repeated calls of these tools. The memory is for the sessions of one agent; none: only for this run."""
    return _Dedup(hashers, memory or DedupMemory())
