"""The built-in gates, which run after all other gates: allowed tools, call budgets, repeated calls.

Each gate ignores calls that an earlier gate refused or answered.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, get_args

from agent_loop.behavior import Behavior, ExceedMode, ToolBudget
from agent_loop.errors import ConfigurationError
from agent_loop.hooks import Hooks, Middleware, ToolRun
from agent_loop.hooks.contexts import LoopEnded, ToolBudgetExceeded, ToolGate
from agent_loop.messages import ToolCall
from agent_loop.tools.tool import ToolResult

OnExceeded = Callable[[ToolBudgetExceeded], Awaitable[None]]
"""Fires the hook `tool-budget:exceeded` and emits the event `BudgetExceeded`."""
Steer = Callable[[str], None]
"""Queues a message for the model."""
NOTHING_USED: Mapping[str, int] = {}
Hasher = Callable[[Mapping[str, Any]], str]
"""Returns equal hashes for equivalent arguments."""


@dataclass(frozen=True, slots=True)
class _AllowedTools:
    names: frozenset[str]
    name: str = "allowed-tools"

    def install(self, hooks: Hooks) -> None:
        hooks.on("tool:gate", self._gate)

    def _gate(self, context: ToolGate) -> None:
        refuse_others(context, self.names, named=self.names)


def refuse_others(context: ToolGate, allowed: Collection[str], *, named: Collection[str]) -> None:
    """Block the call of a tool that is not allowed. `named`: the allowed tools that the model can call here."""
    if context.block or context.result is not None or context.name in allowed:
        return
    names = ", ".join(sorted(named)) or "none"
    context.block, context.reason = True, f"the tool {context.name} is not allowed here; allowed: {names}"


def allowed_tools(names: Collection[str]) -> Middleware:
    """Return a gate that blocks all other tools."""
    return _AllowedTools(frozenset(names))


@dataclass(frozen=True, slots=True)
class _DisallowedTools:
    names: frozenset[str]
    name: str = "disallowed-tools"

    def install(self, hooks: Hooks) -> None:
        hooks.on("tool:gate", self._gate)

    def _gate(self, context: ToolGate) -> None:
        if context.name in self.names and not context.block and context.result is None:
            context.block, context.reason = True, f"the tool {context.name} may not be used here; continue without it"


def disallowed_tools(names: Collection[str]) -> Middleware:
    """Return a gate that blocks these tools, also those that middleware registers."""
    return _DisallowedTools(frozenset(names))


class _ToolBudgets:
    name = "tool-budgets"

    def __init__(
        self, budgets: Mapping[str, ToolBudget], steer: Steer, on_exceeded: OnExceeded, used: Mapping[str, int]
    ) -> None:
        self._budgets = dict(budgets)
        self._used = used
        self._steer = steer
        self._on_exceeded = on_exceeded
        self._counts: dict[str, Counter[str]] = {}
        self._steered: set[tuple[str, str]] = set()
        self._counted: set[tuple[str, str]] = set()
        """Loop id and call id of counted calls: a call whose arguments a wrapper changed passes the gates again."""

    def install(self, hooks: Hooks) -> None:
        hooks.on("tool:gate", self._gate)
        hooks.on("agent:done", self._forget)

    async def _gate(self, context: ToolGate) -> None:
        budget = self._budgets.get(context.name)
        if budget is None or context.block or (context.loop_id, context.call_id) in self._counted:
            return
        counts = self._counts.setdefault(context.loop_id, Counter(self._used))
        count = counts[context.name]
        if context.result is not None or count < budget.max_calls:
            counts[context.name] += 1
            self._counted.add((context.loop_id, context.call_id))
            return
        # No await between reading the count and the decision.
        mode = self._decide(context, budget, count)
        if mode == "steer":
            counts[context.name] += 1
            self._counted.add((context.loop_id, context.call_id))
        await self._on_exceeded(_exceeded_context(context, budget, count, mode))

    def _decide(self, context: ToolGate, budget: ToolBudget, count: int) -> ExceedMode:
        mode, message = (
            budget.on_exceed(context.name, count) if callable(budget.on_exceed) else (budget.on_exceed, budget.message)
        )
        if mode not in get_args(ExceedMode):  # a gate that raises blocks the call
            raise ConfigurationError(f"on_exceed returned the mode {mode!r}; use {' or '.join(get_args(ExceedMode))}")
        if mode == "block":
            context.block, context.reason = True, message or _refusal(context.name, budget.max_calls)
        elif (context.loop_id, context.name) not in self._steered:
            self._steered.add((context.loop_id, context.name))
            self._steer(message or _steering(context.name, count + 1, budget.max_calls))
        return mode

    def _forget(self, context: LoopEnded) -> None:
        self._counts.pop(context.loop_id, None)
        self._steered = {each for each in self._steered if each[0] != context.loop_id}
        self._counted = {each for each in self._counted if each[0] != context.loop_id}


def tool_budgets(
    budgets: Mapping[str, ToolBudget],
    *,
    steer: Steer,
    on_exceeded: OnExceeded,
    used: Mapping[str, int] = NOTHING_USED,
) -> Middleware:
    """Return a gate that limits the calls of each tool in a run. Raises `ConfigurationError` for a negative budget.

    The gate counts the calls that it lets through, so that concurrent calls, whose gates all run before the first of
    them completes, are counted one after the other. Calls that another gate answered count; refused calls do not.
    `used` has the calls of earlier loops of the run by tool.
    """
    for tool, budget in budgets.items():
        if budget.max_calls < 0:
            raise ConfigurationError(f"the budget of {tool} is {budget.max_calls} calls; it must be 0 or more")
    return _ToolBudgets(budgets, steer, on_exceeded, dict(used))


def _exceeded_context(context: ToolGate, budget: ToolBudget, count: int, mode: ExceedMode) -> ToolBudgetExceeded:
    return ToolBudgetExceeded(
        session_id=context.session_id,
        loop_id=context.loop_id,
        turn=context.turn,
        tool=context.name,
        count=count + 1,
        max_calls=budget.max_calls,
        mode=mode,
    )


def _refusal(tool: str, max_calls: int) -> str:
    return f"{tool} may be called {max_calls} times in one run, and was; continue without it"


def _steering(tool: str, count: int, max_calls: int) -> str:
    return (
        f"[Tool budget exceeded: {tool} was called {count} times in this run (budget: {max_calls}). "
        "Stop calling it and continue with what you have.]"
    )


class DedupMemory:
    """The latest call of each tool in all sessions of an agent, as hash and result."""

    def __init__(self) -> None:
        self._latest: dict[tuple[str, str], tuple[str, ToolResult]] = {}

    def recall(self, session_id: str, tool: str, hashed: str) -> ToolResult | None:
        """Return the result of the tool's latest call if it had this hash, else None."""
        entry = self._latest.get((session_id, tool))
        return entry[1] if entry is not None and entry[0] == hashed else None

    def remember(self, session_id: str, tool: str, hashed: str, result: ToolResult) -> None:
        """Store the tool's latest call."""
        self._latest[session_id, tool] = (hashed, result)

    def forget(self, session_id: str) -> None:
        """Discard the calls of a session."""
        self._latest = {key: entry for key, entry in self._latest.items() if key[0] != session_id}


class _Dedup:
    name = "dedup-tools"

    def __init__(self, hashers: Mapping[str, Hasher], memory: DedupMemory) -> None:
        self._hashers = dict(hashers)
        self._memory = memory
        self._running: dict[str, tuple[str, str]] = {}
        """Call id -> session id and hash of the calls that this gate let through."""

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

    def _forget(self, context: LoopEnded) -> None:
        """Discard calls that never ran, for example because their arguments were invalid."""
        self._running = {call: entry for call, entry in self._running.items() if entry[0] != context.session_id}


def dedup(hashers: Mapping[str, Hasher], memory: DedupMemory | None = None) -> Middleware:
    """Return a gate that answers a repeated call of these tools with the last result.

    Only for tools without side effects whose output depends on their arguments alone. Only the latest call of each tool
    is remembered, with the result before hooks changed it: they change the replayed result as well. `memory` is shared
    by the sessions of one agent; None limits it to this run.
    """
    return _Dedup(hashers, memory or DedupMemory())


def framework_gates(  # noqa: PLR0913  # keyword arguments
    behavior: Behavior,
    *,
    steer: Steer,
    on_exceeded: OnExceeded,
    memory: DedupMemory | None = None,
    allowed: Collection[str] | None = None,
    used: Mapping[str, int] = NOTHING_USED,
) -> Hooks:
    """Return the last scope of a run's hooks: allowed tools, then budgets, then repeated calls.

    In this order a policy takes precedence over a cached result, and cached results count against budgets. `allowed`:
    None allows all tools; `used` is as for `tool_budgets`. Raises `ConfigurationError` for a negative budget.
    """
    gates = Hooks()
    if allowed is not None:
        allowed_tools(allowed).install(gates)
    if behavior.tool_budgets:
        tool_budgets(behavior.tool_budgets, steer=steer, on_exceeded=on_exceeded, used=used).install(gates)
    if behavior.dedup_tools:
        dedup(behavior.dedup_tools, memory).install(gates)
    return gates
