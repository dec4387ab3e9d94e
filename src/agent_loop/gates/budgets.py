"""How often a tool may be called in one run. Source: zidane, `toolBudgets`, `runToolCounts`.

The gate counts for itself, when it lets a call through: calls of one batch, whose gates all run before the first of
them is done, are counted one after the other. Calls that were answered by somebody else count; refused ones do not.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping

from agent_loop.behavior import ExceedMode, ToolBudget
from agent_loop.errors import ConfigurationError
from agent_loop.hooks import Hooks, Middleware
from agent_loop.hooks.contexts import LoopOver, ToolBudgetOver, ToolGate

OnExceeded = Callable[[ToolBudgetOver], Awaitable[None]]
"""Tells the world: the hook `tool-budget:exceeded`, the event `BudgetExceeded`."""
Steer = Callable[[str], None]
"""Queues a message for the model."""


class _ToolBudgets:
    name = "tool-budgets"

    def __init__(self, budgets: Mapping[str, ToolBudget], steer: Steer, on_exceeded: OnExceeded) -> None:
        self._budgets = dict(budgets)
        self._steer = steer
        self._on_exceeded = on_exceeded
        self._counts: dict[str, Counter[str]] = {}
        self._steered: set[tuple[str, str]] = set()

    def install(self, hooks: Hooks) -> None:
        hooks.on("tool:gate", self._gate)
        hooks.on("agent:done", self._forget)

    async def _gate(self, context: ToolGate) -> None:
        budget = self._budgets.get(context.name)
        if budget is None or context.block:
            return
        counts = self._counts.setdefault(context.loop_id, Counter())
        count = counts[context.name]
        if context.result is not None or count < budget.max_calls:
            counts[context.name] += 1
            return
        # Nothing is awaited between reading the count and deciding by it.
        mode = self._decide(context, budget, count)
        counts[context.name] += mode == "steer"
        await self._on_exceeded(_told(context, budget, count, mode))

    def _decide(self, context: ToolGate, budget: ToolBudget, count: int) -> ExceedMode:
        mode, message = (
            budget.on_exceed(context.name, count) if callable(budget.on_exceed) else (budget.on_exceed, budget.message)
        )
        if mode == "block":
            context.block, context.reason = True, message or _refusal(context.name, budget.max_calls)
        elif (context.loop_id, context.name) not in self._steered:
            self._steered.add((context.loop_id, context.name))
            self._steer(message or _steering(context.name, count + 1, budget.max_calls))
        return mode

    def _forget(self, context: LoopOver) -> None:
        self._counts.pop(context.loop_id, None)
        self._steered = {each for each in self._steered if each[0] != context.loop_id}


def tool_budgets(budgets: Mapping[str, ToolBudget], *, steer: Steer, on_exceeded: OnExceeded) -> Middleware:
    """At most so many calls of each tool in a run. Raises `ConfigurationError` for a budget below zero."""
    for tool, budget in budgets.items():
        if budget.max_calls < 0:
            raise ConfigurationError(f"the budget of {tool} is {budget.max_calls} calls; it must be 0 or more")
    return _ToolBudgets(budgets, steer, on_exceeded)


def _told(context: ToolGate, budget: ToolBudget, count: int, mode: ExceedMode) -> ToolBudgetOver:
    return ToolBudgetOver(
        session_id=context.session_id,
        loop_id=context.loop_id,
        turn=context.turn,
        tool=context.name,
        count=count + 1,
        max_calls=budget.max_calls,
        mode=mode,
    )


def _refusal(tool: str, max_calls: int) -> str:
    return f"{tool} may be called {max_calls} times in one run, and was; go on without it"


def _steering(tool: str, count: int, max_calls: int) -> str:
    return (
        f"[Tool budget exceeded: {tool} was called {count} times in this run (budget: {max_calls}). "
        "Stop calling it and go on with what you have.]"
    )
