"""What a session spent: every model call with its price, each counted once. Source: run API, sections 5 and 6."""

from collections.abc import Mapping, Sequence
from typing import Self

import msgspec

from agent_mux.events.base import CostRecord, CostSource
from agent_mux.sdk import facts
from agent_mux.sdk.models import Price, cost_in_usd, find_price
from agent_mux.sdk.sessions import ModelCalled


class PricedCall(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One model call and what it cost. An array when it is stored: there are many."""

    key: str
    """The same in every copy of the session; empty where the agent gives it none."""
    at: int
    """Milliseconds since the epoch; 0 where nobody knows."""
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
        """All that went in and out."""
        return self.input_tokens + self.output_tokens + self.cached_tokens + self.cache_creation_tokens


class UsageTotals(msgspec.Struct, kw_only=True):
    """What several calls cost together. Amounts from different sources are never mixed."""

    native_usd: float = 0.0
    """As agents say."""
    computed_usd: float = 0.0
    """From price lists."""
    unknown_calls: int = 0
    """Calls that nobody can price."""
    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    thinking_tokens: int = 0
    cached_tokens: int = 0
    cache_creation_tokens: int = 0

    @property
    def usd(self) -> float:
        """What is known of it, from whichever source."""
        return self.native_usd + self.computed_usd

    def add(self, call: PricedCall) -> None:
        """One more."""
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
        """Of all of these."""
        total = cls()
        for call in calls:
            total.add(call)
        return total

    def record(self) -> CostRecord:
        """As one figure. Its source is the weakest that went into it: a sum is computed when a part of it is."""
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
    """Collects the calls of one session as it is read."""

    def __init__(self, prices: Mapping[str, Price]) -> None:
        self._prices = prices
        self._keyed: dict[str, PricedCall] = {}
        self._others: list[PricedCall] = []
        self.total: float | None = None
        """The agent's own figure for all of them."""

    def called(self, at: int | None, said: ModelCalled) -> None:
        """One more call, or a better word on one that was told before."""
        call = self.priced(at or 0, said)
        if said.key:
            self._keyed[said.key] = call
        else:
            self._others.append(call)

    def priced(self, at: int, said: ModelCalled) -> PricedCall:
        """A call with its price: as the agent says, or as the price list does."""
        usage = said.usage
        usd, source = self._price_of(said)
        return PricedCall(
            said.key,
            at,
            said.model,
            usage.input_tokens,
            usage.output_tokens,
            usage.thinking_tokens or 0,
            usage.cached_tokens or 0,
            usage.cache_creation_tokens or 0,
            usd,
            source,
        )

    def _price_of(self, said: ModelCalled) -> tuple[float, CostSource]:
        if said.usd is not None:
            return said.usd, "native"
        price = find_price(self._prices, said.model)
        return (0.0, "unknown") if price is None else (_price_of(said.usage, price), "computed")

    def calls(self) -> tuple[PricedCall, ...]:
        """All of them. Where the agent tells what the session cost, they share that as our prices would have it."""
        calls = (*self._keyed.values(), *self._others)
        if self.total is None:
            return calls
        if not calls:
            return (PricedCall("", 0, "", 0, 0, 0, 0, 0, self.total, "native"),)
        known = all(call.source != "unknown" for call in calls)
        weights = [call.usd if known else float(call.tokens) for call in calls]
        whole = sum(weights)
        shares = [weight / whole for weight in weights] if whole > 0 else [1 / len(calls)] * len(calls)
        return tuple(
            msgspec.structs.replace(call, usd=self.total * share, source="native")
            for call, share in zip(calls, shares, strict=True)
        )


def _price_of(usage: facts.Usage, price: Price) -> float:
    return cost_in_usd(
        price,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cached_tokens=usage.cached_tokens or 0,
        cache_creation_tokens=usage.cache_creation_tokens or 0,
        of_one_call=usage.of_one_call,
    )
