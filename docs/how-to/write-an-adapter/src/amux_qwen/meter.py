"""Token counts. Each model call of the main agent reports its own; `result.usage` is the sum of the whole session.

The sum includes sub-agents, failed attempts and unreported calls (the agent's memory), but also earlier runs of a
resumed session.
"""

from collections.abc import Mapping
from typing import Any

from agent_mux.sdk import facts
from agent_mux_adapters._dialects.tolerant import whole

Facts = tuple[facts.Fact, ...]
Counts = tuple[int, int, int]
"""Uncached input, output, cached input."""
NOTHING: Counts = (0, 0, 0)


def counts_of(usage: Mapping[str, Any]) -> Counts:
    """Return the counts of a `usage` object, whose `input_tokens` include cached ones."""
    cached = whole(usage.get("cache_read_input_tokens"))
    return max(whole(usage.get("input_tokens")) - cached, 0), whole(usage.get("output_tokens")), cached


def usage_facts(counts: Counts) -> Facts:
    """Return the counts as a fact; no fact when all are zero."""
    if not any(counts):
        return ()
    return (facts.Usage(input_tokens=counts[0], output_tokens=counts[1], cached_tokens=counts[2]),)


class Meter:
    """Computes the unreported tokens of a turn from those of its model calls and the sum of its result."""

    def __init__(self, *, is_new: bool) -> None:
        """Initialize the counts; `is_new` is whether the session is known to begin with this run."""
        self._reported = NOTHING
        self._total = NOTHING if is_new else None
        """The sum of the last result; None when unknown, because it may include earlier runs."""
        self.has_unreported = False
        """Whether this turn had a sub-agent or a failed attempt, whose tokens no model call reports."""

    def model_call(self, usage: Mapping[str, Any]) -> Facts:
        """Count one call of the main agent, and return its usage."""
        counts = counts_of(usage)
        self._reported = _plus(self._reported, counts)
        return usage_facts(counts)

    def turn(self, usage: Mapping[str, Any]) -> Facts:
        """Return the unreported tokens of the turn that a result ends, if they are known to be of this run."""
        total, before = counts_of(usage), self._total
        if not any(total):
            return ()  # the result of an interrupted turn has no counts
        reported, self._reported, self._total = self._reported, NOTHING, total
        has_unreported, self.has_unreported = self.has_unreported, False
        if before is None and not has_unreported:
            return ()
        before = before or NOTHING
        rest = _plus(total, _plus(before, reported), sign=-1)
        return usage_facts(rest) if min(rest) >= 0 else ()


def _plus(one: Counts, other: Counts, sign: int = 1) -> Counts:
    return one[0] + sign * other[0], one[1] + sign * other[1], one[2] + sign * other[2]
