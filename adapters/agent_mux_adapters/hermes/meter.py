"""Token counts. The gateway counts over the live session; we report what each turn added.

`input` is without the cache, `prompt` with what was read from it and written to it: the two are not told apart. What
anything costs is never told.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from agent_mux.events.cost import CostRecord
from agent_mux.facts import ContextCompacted, ContextFilling, Fact, RunCost, Usage
from agent_mux_adapters._dialects.tolerant import whole

FILLING = 0.8  # of the context window; the event spec (19) names this share


class _Count(msgspec.Struct, frozen=True, gc=False):
    input: int = 0
    output: int = 0
    reasoning: int = 0
    cached: int = 0

    def minus(self, other: "_Count") -> "_Count":
        return _Count(*(max(a - b, 0) for a, b in zip(self.counts(), other.counts(), strict=True)))

    def plus(self, other: "_Count") -> "_Count":
        return _Count(*(a + b for a, b in zip(self.counts(), other.counts(), strict=True)))

    def counts(self) -> tuple[int, int, int, int]:
        return self.input, self.output, self.reasoning, self.cached


_NOTHING = _Count()


class Meter:
    """What a run used."""

    def __init__(self) -> None:
        self._counted = _NOTHING
        self._spent = _NOTHING
        self._compressions = 0
        self._warned = False

    def turn_over(self, usage: Mapping[str, Any]) -> tuple[Fact, ...]:
        """The figures of a closing message."""
        now = _count_of(usage)
        added, self._counted = now.minus(self._counted), now
        self._spent = self._spent.plus(added)
        used = () if added == _NOTHING else (_usage_of(added),)
        total = () if self._spent == _NOTHING else (RunCost(_cost_of(self._spent)),)
        return *used, *self._context(usage), *total

    def subagent_over(self, payload: Mapping[str, Any]) -> CostRecord | None:
        """The figures of a sub-agent, which `usage` leaves out. Its input includes the cache."""
        spent = _Count(
            whole(payload.get("input_tokens")),
            whole(payload.get("output_tokens")),
            whole(payload.get("reasoning_tokens")),
        )
        self._spent = self._spent.plus(spent)
        return _cost_of(spent) if spent != _NOTHING else None

    def _context(self, usage: Mapping[str, Any]) -> tuple[Fact, ...]:
        facts: list[Fact] = []
        times = whole(usage.get("compressions"))
        if times > self._compressions:
            self._compressions, self._warned = times, False
            facts.append(ContextCompacted(""))
        filled, size = whole(usage.get("context_used")), whole(usage.get("context_max"))
        if size and filled >= FILLING * size and not self._warned:
            self._warned = True
            facts.append(ContextFilling(filled, size))
        return tuple(facts)


def _count_of(usage: Mapping[str, Any]) -> _Count:
    fresh = whole(usage.get("input"))
    return _Count(
        fresh, whole(usage.get("output")), whole(usage.get("reasoning")), max(whole(usage.get("prompt")) - fresh, 0)
    )


def _usage_of(count: _Count) -> Usage:
    return Usage(count.input, count.output, thinking_tokens=count.reasoning, cached_tokens=count.cached)


def _cost_of(count: _Count) -> CostRecord:
    return CostRecord(
        total_usd=0.0,
        input_tokens=count.input,
        output_tokens=count.output,
        thinking_tokens=count.reasoning,
        cached_tokens=count.cached,
        source="unknown",
    )
