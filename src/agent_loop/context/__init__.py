"""Keeping the messages of a request within the context window."""

from agent_loop.context.compaction import Compaction, CompactionStrategy, Summarize, TieredCompaction
from agent_loop.context.estimation import (
    ContextTracker,
    Estimator,
    estimate_message,
    estimate_overhead,
    estimate_tokens,
    estimate_tools,
)
from agent_loop.context.manager import AppliedCompaction, ContextManager, FittedContext
from agent_loop.context.persistence import ResultPersistence
from agent_loop.context.tool_outputs import elide_old_outputs, elide_stale_reads, over_output_budget, turn_output_bytes

__all__ = [
    "AppliedCompaction",
    "Compaction",
    "CompactionStrategy",
    "ContextManager",
    "ContextTracker",
    "Estimator",
    "FittedContext",
    "ResultPersistence",
    "Summarize",
    "TieredCompaction",
    "elide_old_outputs",
    "elide_stale_reads",
    "estimate_message",
    "estimate_overhead",
    "estimate_tokens",
    "estimate_tools",
    "over_output_budget",
    "turn_output_bytes",
]
