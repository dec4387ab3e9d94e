"""Keeping what is sent within the context window."""

from agent_loop.context.compaction import Compaction, CompactionStrategy, Summarize, TieredCompaction
from agent_loop.context.estimation import (
    Estimator,
    estimate_message,
    estimate_overhead,
    estimate_tokens,
    estimate_tools,
)
from agent_loop.context.fitted import Compacted, Fitted
from agent_loop.context.manager import ContextManager
from agent_loop.context.output_budget import over_output_budget, turn_output_bytes
from agent_loop.context.persistence import ResultPersistence
from agent_loop.context.stale import elide_stale_reads
from agent_loop.context.tail import keep_tail
from agent_loop.context.tracker import ContextTracker

__all__ = [
    "Compacted",
    "Compaction",
    "CompactionStrategy",
    "ContextManager",
    "ContextTracker",
    "Estimator",
    "Fitted",
    "ResultPersistence",
    "Summarize",
    "TieredCompaction",
    "elide_stale_reads",
    "estimate_message",
    "estimate_overhead",
    "estimate_tokens",
    "estimate_tools",
    "keep_tail",
    "over_output_budget",
    "turn_output_bytes",
]
