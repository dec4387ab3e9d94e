"""Sums of tokens and money over a run: the agent's own figures first, never counted twice."""

from agent_mux.events.cost import CostRecord
from agent_mux.facts import Usage


def add_optional(left: int | None, right: int | None) -> int | None:
    """Sum of two counts that may be unknown; unknown only when both are."""
    return right if left is None else left if right is None else left + right


def add_costs(left: CostRecord | None, right: CostRecord | None) -> CostRecord | None:
    """Sum of two records; a sum with an unknown part is unknown."""
    if left is None or right is None:
        return left or right
    sources = {left.source, right.source}
    return CostRecord(
        total_usd=left.total_usd + right.total_usd,
        input_tokens=left.input_tokens + right.input_tokens,
        output_tokens=left.output_tokens + right.output_tokens,
        thinking_tokens=add_optional(left.thinking_tokens, right.thinking_tokens),
        cached_tokens=add_optional(left.cached_tokens, right.cached_tokens),
        cache_creation_tokens=add_optional(left.cache_creation_tokens, right.cache_creation_tokens),
        source="unknown" if "unknown" in sources else "computed" if "computed" in sources else left.source,
    )


def cost_of_usage(usage: Usage) -> CostRecord:
    """Tokens without a price."""
    return CostRecord(
        total_usd=0.0,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        thinking_tokens=usage.thinking_tokens,
        cached_tokens=usage.cached_tokens,
        cache_creation_tokens=usage.cache_creation_tokens,
        source="unknown",
    )


class CostTally:
    """What a run cost so far, from the best source there is: the run's own total, its turns, or its model calls."""

    __slots__ = ("_run", "_turns", "_usage")

    def __init__(self) -> None:
        self._run: CostRecord | None = None
        self._turns: CostRecord | None = None
        self._usage: CostRecord | None = None

    def of_run(self, cost: CostRecord | None) -> None:
        """The agent's cumulative figure."""
        self._run = cost

    def of_turn(self, cost: CostRecord | None) -> None:
        """A turn's own figure."""
        self._turns = add_costs(self._turns, cost)

    def of_call(self, usage: Usage) -> None:
        """The tokens of a model call."""
        self._usage = add_costs(self._usage, cost_of_usage(usage))

    @property
    def total(self) -> CostRecord | None:
        """The best figure; None when the agent said nothing."""
        return self._run or self._turns or self._usage
