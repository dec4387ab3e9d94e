"""Model calls of stored sessions with their prices, and totals over them. Each call is counted once.

See docs/spec/run-api.md, sections 5 and 6.
"""

from collections.abc import Mapping, Sequence
from typing import Self

import msgspec

from agent_mux.events.base import CostRecord, CostSource
from agent_mux.sdk import facts
from agent_mux.sdk.models import Price, cost_in_usd, find_price
from agent_mux.sdk.sessions import ModelCalled


class PricedCall(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One model call and its cost. Stored as an array, because the cache holds many."""

    key: str
    """Id that all copies of the session share; empty when the agent stores none."""
    at: int
    """Milliseconds since the epoch; 0 when unknown."""
    model: str
    input_tokens: int
    output_tokens: int
    thinking_tokens: int
    cached_tokens: int
    cache_creation_tokens: int
    usd: float
    source: CostSource

    @property
    def tokens(self) -> int:
        """The number of input and output tokens, cached ones included."""
        return self.input_tokens + self.output_tokens + self.cached_tokens + self.cache_creation_tokens


class UsageTotals(msgspec.Struct, kw_only=True):
    """The costs and tokens of several model calls. Amounts from different sources are kept apart."""

    native_usd: float = 0.0
    """US dollars that agents reported."""
    computed_usd: float = 0.0
    """US dollars computed with price lists."""
    unknown_calls: int = 0
    """Number of calls without a known price."""
    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    thinking_tokens: int = 0
    cached_tokens: int = 0
    cache_creation_tokens: int = 0

    @property
    def usd(self) -> float:
        """The known amount in US dollars, from all sources."""
        return self.native_usd + self.computed_usd

    def add(self, call: PricedCall) -> None:
        """Add one call to the totals."""
        self.calls += 1
        match call.source:
            case "native":
                self.native_usd += call.usd
            case "computed":
                self.computed_usd += call.usd
            case "unknown":
                self.unknown_calls += 1
        self.input_tokens += call.input_tokens
        self.output_tokens += call.output_tokens
        self.thinking_tokens += call.thinking_tokens
        self.cached_tokens += call.cached_tokens
        self.cache_creation_tokens += call.cache_creation_tokens

    @classmethod
    def of(cls, calls: Sequence[PricedCall]) -> Self:
        """Return the totals of these calls."""
        total = cls()
        for call in calls:
            total.add(call)
        return total

    def record(self) -> CostRecord:
        """Return the totals as one record. Its source is `computed` as soon as one part of the amount is."""
        source: CostSource = "computed" if self.computed_usd else "native"
        if self.unknown_calls == self.calls:
            source = "unknown"
        return CostRecord(
            total_usd=self.usd,
            input_tokens=self.input_tokens,
            output_tokens=self.output_tokens,
            thinking_tokens=self.thinking_tokens or None,
            cached_tokens=self.cached_tokens or None,
            cache_creation_tokens=self.cache_creation_tokens or None,
            source=source,
        )


class CallCollector:
    """Collects and prices the model calls of one session while it is read."""

    def __init__(self, prices: Mapping[str, Price]) -> None:
        self._prices = prices
        self._keyed: dict[str, PricedCall] = {}
        self._unkeyed: list[PricedCall] = []
        self.total: float | None = None
        """The agent's own figure for the session in US dollars; None if it stores none."""

    def add(self, at: int | None, fact: ModelCalled) -> None:
        """Add a call. It replaces an earlier one with the same key."""
        call = self.price(at or 0, fact)
        if fact.key:
            self._keyed[fact.key] = call
        else:
            self._unkeyed.append(call)

    def price(self, at: int, fact: ModelCalled) -> PricedCall:
        """Return a call with the amount that the agent stored, else with the one of the price list."""
        usage = fact.usage
        usd, source = self._amount_of(fact)
        return PricedCall(
            fact.key,
            at,
            fact.model,
            usage.input_tokens,
            usage.output_tokens,
            usage.thinking_tokens or 0,
            usage.cached_tokens or 0,
            usage.cache_creation_tokens or 0,
            usd,
            source,
        )

    def _amount_of(self, fact: ModelCalled) -> tuple[float, CostSource]:
        if fact.usd is not None:
            return fact.usd, "native"
        price = find_price(self._prices, fact.model)
        return (0.0, "unknown") if price is None else (_computed_amount(fact.usage, price), "computed")

    def calls(self) -> tuple[PricedCall, ...]:
        """Return all calls. If the agent stores an amount for the session, it is divided among them by their prices."""
        calls = (*self._keyed.values(), *self._unkeyed)
        if self.total is None:
            return calls
        if not calls:
            return (PricedCall("", 0, "", 0, 0, 0, 0, 0, self.total, "native"),)
        all_priced = all(call.source != "unknown" for call in calls)
        weights = [call.usd if all_priced else float(call.tokens) for call in calls]
        whole = sum(weights)
        shares = [weight / whole for weight in weights] if whole > 0 else [1 / len(calls)] * len(calls)
        return tuple(
            msgspec.structs.replace(call, usd=self.total * share, source="native")
            for call, share in zip(calls, shares, strict=True)
        )


def _computed_amount(usage: facts.Usage, price: Price) -> float:
    return cost_in_usd(
        price,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cached_tokens=usage.cached_tokens or 0,
        cache_creation_tokens=usage.cache_creation_tokens or 0,
        of_one_call=usage.of_one_call,
    )
