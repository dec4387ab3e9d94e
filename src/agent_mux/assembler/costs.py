"""Sums of tokens and money over a run: the agent's own figures first, never counted twice."""

from collections.abc import Mapping

from msgspec.structs import replace

from agent_mux.events.base import CostRecord
from agent_mux.sdk.facts import Usage
from agent_mux.sdk.models import Price, cost_in_usd, find_price


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
    """What a run cost so far, from the best source there is: the run's own total, its turns, or its model calls.

    What the agent does not price is priced here, where the model has a price.
    """

    __slots__ = ("_calls", "_calls_of_turn", "_prices", "_run", "_turns", "model")

    def __init__(self, prices: Mapping[str, Price], model: str | None) -> None:
        self._prices = prices
        self.model = model
        """The one that is used now."""
        self._run: CostRecord | None = None
        self._turns: CostRecord | None = None
        self._calls: CostRecord | None = None
        self._calls_of_turn: CostRecord | None = None

    def of_run(self, cost: CostRecord | None) -> CostRecord | None:
        """The agent's cumulative figure. Returns it, priced."""
        self._run = self._priced_sum(cost, self._calls)
        return self._run

    def of_turn(self, cost: CostRecord | None) -> CostRecord | None:
        """A turn is over: its own figure, or what its calls add up to. Returns it, priced."""
        known = self._priced_sum(cost, self._calls_of_turn) if cost is not None else self._calls_of_turn
        self._turns = add_costs(self._turns, known)
        self._calls_of_turn = None
        return known

    def of_call(self, usage: Usage) -> None:
        """The tokens of a model call."""
        cost = self._priced(cost_of_usage(usage), of_one_call=usage.of_one_call)
        self._calls = add_costs(self._calls, cost)
        self._calls_of_turn = add_costs(self._calls_of_turn, cost)

    @property
    def total(self) -> CostRecord | None:
        """The best figure; None when the agent said nothing."""
        return self._run or add_costs(self._turns, self._calls_of_turn)

    @property
    def is_told_by_agent(self) -> bool:
        """The agent gives its own cumulative figures."""
        return self._run is not None

    def _priced_sum(self, cost: CostRecord | None, calls: CostRecord | None) -> CostRecord | None:
        if cost is None or cost.source not in {None, "unknown"}:
            return cost
        if calls is not None and calls.source == "computed" and _tokens(calls) == _tokens(cost):
            return replace(cost, total_usd=calls.total_usd, source="computed")  # long calls may cost more than short
        return self._priced(cost, of_one_call=False)

    def _priced(self, cost: CostRecord, *, of_one_call: bool) -> CostRecord:
        price = find_price(self._prices, self.model)
        if price is None:
            return cost
        tokens = dict(zip(_COUNTS, _tokens(cost), strict=True))
        return replace(cost, total_usd=cost_in_usd(price, **tokens, of_one_call=of_one_call), source="computed")


_COUNTS = ("input_tokens", "output_tokens", "cached_tokens", "cache_creation_tokens")


def _tokens(cost: CostRecord) -> tuple[int, ...]:
    return tuple(getattr(cost, name) or 0 for name in _COUNTS)
