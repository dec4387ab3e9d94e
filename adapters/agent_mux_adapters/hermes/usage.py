"""Tokens that a Hermes run used. The gateway counts over the live session; a turn's usage is what it added.

`input` excludes the cache; `prompt` includes the tokens read from and written to it, without separating the two. The
gateway reports no prices.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from agent_mux.events.base import CostRecord
from agent_mux.sdk.facts import ContextCompacted, ContextFilling, Fact, RunCost, Usage
from agent_mux_adapters._dialects.tolerant import whole

WARNING_SHARE = 0.8
"""Share of the context window from which a warning is due. See docs/spec/events.md, section 19."""


class _TokenCount(msgspec.Struct, frozen=True, gc=False):
    input: int = 0
    output: int = 0
    reasoning: int = 0
    cached: int = 0

    def minus(self, other: "_TokenCount") -> "_TokenCount":
        return _TokenCount(*(max(a - b, 0) for a, b in zip(self.counts(), other.counts(), strict=True)))

    def plus(self, other: "_TokenCount") -> "_TokenCount":
        return _TokenCount(*(a + b for a, b in zip(self.counts(), other.counts(), strict=True)))

    def counts(self) -> tuple[int, int, int, int]:
        return self.input, self.output, self.reasoning, self.cached


_ZERO = _TokenCount()


class HermesUsage:
    """Token totals and context size of one run."""

    def __init__(self) -> None:
        self._session_count = _ZERO
        """The gateway's latest count of the live session."""
        self._run_count = _ZERO
        self._compressions = 0
        self._has_warned = False

    def turn_ended(self, usage: Mapping[str, Any]) -> tuple[Fact, ...]:
        """Return the facts of a closing message's `usage`: what the turn added, the context, the total of the run."""
        latest = _count_of(usage)
        added, self._session_count = latest.minus(self._session_count), latest
        self._run_count = self._run_count.plus(added)
        turn_usage = () if added == _ZERO else (_usage_of(added),)
        total = () if self._run_count == _ZERO else (RunCost(_cost_of(self._run_count)),)
        return *turn_usage, *self._context(usage), *total

    def subagent_ended(self, payload: Mapping[str, Any]) -> CostRecord | None:
        """Add the tokens of a sub-agent, which `usage` excludes, and return them. Their input includes the cache."""
        count = _TokenCount(
            whole(payload.get("input_tokens")),
            whole(payload.get("output_tokens")),
            whole(payload.get("reasoning_tokens")),
        )
        self._run_count = self._run_count.plus(count)
        return _cost_of(count) if count != _ZERO else None

    def _context(self, usage: Mapping[str, Any]) -> tuple[Fact, ...]:
        facts: list[Fact] = []
        compressions = whole(usage.get("compressions"))
        if compressions > self._compressions:
            self._compressions, self._has_warned = compressions, False
            facts.append(ContextCompacted(""))
        used, size = whole(usage.get("context_used")), whole(usage.get("context_max"))
        if size and used >= WARNING_SHARE * size and not self._has_warned:
            self._has_warned = True
            facts.append(ContextFilling(used, size))
        return tuple(facts)


def _count_of(usage: Mapping[str, Any]) -> _TokenCount:
    uncached = whole(usage.get("input"))
    cached = max(whole(usage.get("prompt")) - uncached, 0)
    return _TokenCount(uncached, whole(usage.get("output")), whole(usage.get("reasoning")), cached)


def _usage_of(count: _TokenCount) -> Usage:
    return Usage(count.input, count.output, thinking_tokens=count.reasoning, cached_tokens=count.cached)


def _cost_of(count: _TokenCount) -> CostRecord:
    return CostRecord(
        total_usd=0.0,
        input_tokens=count.input,
        output_tokens=count.output,
        thinking_tokens=count.reasoning,
        cached_tokens=count.cached,
        source="unknown",
    )
