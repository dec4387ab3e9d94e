"""The framework's own gates, behind everybody else's: allowed tools, budgets of calls, repeated calls.

Each leaves a call alone that was already refused or answered. Source: zidane, "Gate precedence".
"""

from agent_loop.gates.allowed import allowed_tools
from agent_loop.gates.budgets import tool_budgets
from agent_loop.gates.dedup import DedupMemory, dedup
from agent_loop.gates.order import framework_gates

__all__ = ["DedupMemory", "allowed_tools", "dedup", "framework_gates", "tool_budgets"]
