"""Token counts and costs: replacing impossible numbers, adding records, and the running total of a run.

See docs/spec/events.md, sections 2.1, 3.1 and 17.
"""

from collections.abc import Mapping
from math import isfinite

from msgspec.structs import replace

from agent_mux.events.base import CostRecord
from agent_mux.sdk.facts import Usage
from agent_mux.sdk.models import Price, cost_in_usd, find_price

_COUNTS = ("input_tokens", "output_tokens", "cached_tokens", "cache_creation_tokens")


class CostTally:
    """The cost of a run so far, from the best source available.

    The order of preference is the agent's cumulative figure, the sum of the turns, the sum of the model calls. Usage
    that the agent reports without an amount is priced here if the model has a price.
    """

    __slots__ = ("_calls", "_calls_of_turn", "_earlier", "_prices", "_run", "_turns", "call_count", "model")

    def __init__(self, prices: Mapping[str, Price], model: str | None) -> None:
        self._prices = prices
        self.model = model
        """The model in use, whose price applies."""
        self.call_count = 0
        """Number of model calls whose tokens were reported one by one."""
        self._earlier: CostRecord | None = None
        """The cost of the earlier attempts of the run, which the figures of the agent do not contain."""
        self._run: CostRecord | None = None
        self._turns: CostRecord | None = None
        self._calls: CostRecord | None = None
        self._calls_of_turn: CostRecord | None = None

    def set_run_cost(self, cost: CostRecord | None) -> CostRecord | None:
        """Store the agent's cumulative figure and return the cost of the run, with an amount if one can be computed."""
        self._run = self._with_amount(cost, self._calls)
        return self.total

    def end_turn(self, cost: CostRecord | None) -> CostRecord | None:
        """Add a turn and return its cost: the agent's figure, else the sum of the turn's model calls."""
        known = self._with_amount(cost, self._calls_of_turn) if cost is not None else self._calls_of_turn
        self._turns = add_costs(self._turns, known)
        self._calls_of_turn = None
        return known

    def add_model_call(self, usage: Usage) -> None:
        """Add the tokens of one model call."""
        self.call_count += usage.of_one_call
        cost = self._priced(cost_of_usage(usage), of_one_call=usage.of_one_call)
        self._calls = add_costs(self._calls, cost)
        self._calls_of_turn = add_costs(self._calls_of_turn, cost)

    def begin_attempt(self) -> CostRecord | None:
        """Begin to count for a new process of the agent. Returns the cost of the attempt that ended."""
        attempt = self._of_attempt
        if attempt is not None and (attempt.total_usd or any(_tokens(attempt))):
            self._earlier = add_costs(self._earlier, attempt)
        self._run = self._turns = self._calls = self._calls_of_turn = None
        return attempt

    def use_prices(self, prices: Mapping[str, Price], model: str | None) -> None:
        """Price what follows as the model of another agent, or as another model."""
        self._prices, self.model = prices, model

    @property
    def total(self) -> CostRecord | None:
        """The best figure for the run so far; None when the agent reported neither costs nor tokens."""
        return add_costs(self._earlier, self._of_attempt)

    @property
    def _of_attempt(self) -> CostRecord | None:
        return self._run or add_costs(self._turns, self._calls_of_turn)

    @property
    def output_of_turn(self) -> int:
        """Output tokens of the model calls in the turn that is open."""
        return 0 if self._calls_of_turn is None else self._calls_of_turn.output_tokens

    @property
    def has_cumulative_cost(self) -> bool:
        """Whether the agent reports cumulative figures itself."""
        return self._run is not None

    def _with_amount(self, cost: CostRecord | None, calls: CostRecord | None) -> CostRecord | None:
        if cost is None or cost.source not in {None, "unknown"}:
            return cost
        if calls is not None and calls.source == "computed" and _tokens(calls) == _tokens(cost):
            # Prices may depend on the length of each call, so the sum over the calls is more precise.
            return replace(cost, total_usd=calls.total_usd, source="computed")
        return self._priced(cost, of_one_call=False)

    def _priced(self, cost: CostRecord, *, of_one_call: bool) -> CostRecord:
        price = find_price(self._prices, self.model)
        if price is None:
            return cost
        tokens = dict(zip(_COUNTS, _tokens(cost), strict=True))
        return replace(cost, total_usd=cost_in_usd(price, **tokens, of_one_call=of_one_call), source="computed")


def _tokens(cost: CostRecord) -> tuple[int, ...]:
    return tuple(getattr(cost, name) or 0 for name in _COUNTS)


def cost_of_usage(usage: Usage) -> CostRecord:
    """Return a record with these tokens and an unknown amount."""
    return CostRecord(
        total_usd=0.0,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        thinking_tokens=usage.thinking_tokens,
        cached_tokens=usage.cached_tokens,
        cache_creation_tokens=usage.cache_creation_tokens,
        source="unknown",
    )


def add_costs(left: CostRecord | None, right: CostRecord | None) -> CostRecord | None:
    """Return the sum of two records. A sum with an `unknown` part is `unknown`."""
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


def add_optional(left: int | None, right: int | None) -> int | None:
    """Return the sum of two counts that may be unknown; None only when both are None."""
    return right if left is None else left if right is None else left + right


# -- numbers as an agent may print them


def non_negative(value: int) -> int:
    """Return the number, or 0 if it is negative."""
    return max(value, 0)


def non_negative_or_none(value: int | None) -> int | None:
    """Return the number, 0 if it is negative, or None if it is unknown."""
    return None if value is None else max(value, 0)


def sanitize_usage(usage: Usage) -> Usage:
    """Return the usage with negative counts replaced by 0."""
    return Usage(
        non_negative(usage.input_tokens),
        non_negative(usage.output_tokens),
        non_negative_or_none(usage.thinking_tokens),
        non_negative_or_none(usage.cached_tokens),
        non_negative_or_none(usage.cache_creation_tokens),
        usage.of_one_call,
    )


def sanitize_cost(cost: CostRecord | None) -> CostRecord | None:
    """Return the record with negative counts replaced by 0; a negative or infinite amount becomes unknown."""
    if cost is None:
        return None
    is_valid = isfinite(cost.total_usd) and cost.total_usd >= 0
    return replace(
        cost,
        total_usd=cost.total_usd if is_valid else 0.0,
        source=cost.source if is_valid else "unknown",
        input_tokens=non_negative(cost.input_tokens),
        output_tokens=non_negative(cost.output_tokens),
        thinking_tokens=non_negative_or_none(cost.thinking_tokens),
        cached_tokens=non_negative_or_none(cost.cached_tokens),
        cache_creation_tokens=non_negative_or_none(cost.cache_creation_tokens),
    )
