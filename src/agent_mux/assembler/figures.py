"""Figures as an agent may print them, as figures that can be: never negative, never infinite."""

from math import isfinite

from msgspec.structs import replace

from agent_mux.events.cost import CostRecord
from agent_mux.sdk.facts import Usage


def possible(value: int) -> int:
    """A count that can be."""
    return max(value, 0)


def possible_or_none(value: int | None) -> int | None:
    """A count that can be, or that nobody said."""
    return None if value is None else max(value, 0)


def possible_usage(usage: Usage) -> Usage:
    """Tokens that can be."""
    return Usage(
        possible(usage.input_tokens),
        possible(usage.output_tokens),
        possible_or_none(usage.thinking_tokens),
        possible_or_none(usage.cached_tokens),
        possible_or_none(usage.cache_creation_tokens),
        usage.of_one_call,
    )


def possible_cost(cost: CostRecord | None) -> CostRecord | None:
    """A cost that can be; money that cannot be is unknown."""
    if cost is None:
        return None
    sound = isfinite(cost.total_usd) and cost.total_usd >= 0
    return replace(
        cost,
        total_usd=cost.total_usd if sound else 0.0,
        source=cost.source if sound else "unknown",
        input_tokens=possible(cost.input_tokens),
        output_tokens=possible(cost.output_tokens),
        thinking_tokens=possible_or_none(cost.thinking_tokens),
        cached_tokens=possible_or_none(cost.cached_tokens),
        cache_creation_tokens=possible_or_none(cost.cache_creation_tokens),
    )
