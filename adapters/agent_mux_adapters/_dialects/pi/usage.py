"""Tokens and cost of the model calls: `usage` of each assistant message, with the agent's own price."""

from typing import Any

from agent_mux.events.base import CostRecord
from agent_mux.sdk.facts import Fact, RunCost, Usage
from agent_mux_adapters._dialects.tolerant import dollars, mapping, optional_whole, whole


class PiUsage:
    """The usage of the run and of the current turn."""

    def __init__(self) -> None:
        self._run: CostRecord | None = None
        self._turn: CostRecord | None = None

    def record_call(self, usage: Any) -> tuple[Fact, ...]:
        """Count a model call of the main agent; failed calls have no usage and are not counted."""
        cost = cost_record(usage)
        if cost is None:
            return ()
        tokens = Usage(
            cost.input_tokens,
            cost.output_tokens,
            thinking_tokens=cost.thinking_tokens,
            cached_tokens=cost.cached_tokens,
            cache_creation_tokens=cost.cache_creation_tokens,
        )
        return tokens, *self.record_subagent_call(cost)

    def record_subagent_call(self, cost: CostRecord) -> tuple[Fact, ...]:
        """Count a model call of a sub-agent: it adds to the cost, but is not a call of the main agent."""
        self._run, self._turn = sum_records(self._run, cost), sum_records(self._turn, cost)
        return (RunCost(self._run),)

    def take_turn(self) -> CostRecord | None:
        """Return the usage of the turn and reset it; None when nothing was used."""
        turn, self._turn = self._turn, None
        return turn


def cost_record(usage: Any) -> CostRecord | None:
    """Convert the `usage` of a message; None when nothing was used."""
    fields = mapping(usage)
    counts = [whole(fields.get(name)) for name in ("input", "output", "cacheRead", "cacheWrite")]
    if not any(counts):
        return None
    amount = dollars(mapping(fields.get("cost")).get("total"))
    # The agent reports 0 for a model whose price is unknown to it.
    return CostRecord(
        total_usd=amount,
        input_tokens=counts[0],
        output_tokens=counts[1],
        thinking_tokens=optional_whole(fields.get("reasoning", fields.get("reasoningTokens"))),
        cached_tokens=counts[2],
        cache_creation_tokens=counts[3],
        source="native" if amount else "unknown",
    )


def sum_records(left: CostRecord | None, right: CostRecord) -> CostRecord:
    """Add two records; a sum with an unknown part is unknown."""
    if left is None:
        return right
    thoughts = [count for count in (left.thinking_tokens, right.thinking_tokens) if count is not None]
    return CostRecord(
        total_usd=left.total_usd + right.total_usd,
        input_tokens=left.input_tokens + right.input_tokens,
        output_tokens=left.output_tokens + right.output_tokens,
        thinking_tokens=sum(thoughts) if thoughts else None,
        cached_tokens=(left.cached_tokens or 0) + (right.cached_tokens or 0),
        cache_creation_tokens=(left.cache_creation_tokens or 0) + (right.cache_creation_tokens or 0),
        source=left.source if left.source == right.source else "unknown",
    )
