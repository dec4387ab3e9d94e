"""The order of the framework's gates. Source: zidane, "Gate precedence"."""

from collections.abc import Collection

from agent_loop.behavior import Behavior
from agent_loop.gates.allowed import allowed_tools
from agent_loop.gates.budgets import OnExceeded, Steer, tool_budgets
from agent_loop.gates.dedup import DedupMemory, dedup
from agent_loop.hooks import Hooks


def framework_gates(
    behavior: Behavior,
    *,
    steer: Steer,
    on_exceeded: OnExceeded,
    memory: DedupMemory | None = None,
    allowed: Collection[str] | None = None,
) -> Hooks:
    """The last scope of a run's chain: what is allowed, then budgets, then repeated calls.

    So a policy beats a cache, and a used-up budget is not filled up from one. `allowed`: None: all tools. Raises
    `ConfigurationError` for a budget that cannot be.
    """
    gates = Hooks()
    if allowed is not None:
        allowed_tools(allowed).install(gates)
    if behavior.tool_budgets:
        tool_budgets(behavior.tool_budgets, steer=steer, on_exceeded=on_exceeded).install(gates)
    if behavior.dedup_tools:
        dedup(behavior.dedup_tools, memory).install(gates)
    return gates
