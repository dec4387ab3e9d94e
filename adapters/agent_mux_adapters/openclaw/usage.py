"""Tokens and cost in OpenClaw's format, which its documents, its gateway and its stored events share."""

from collections.abc import Mapping
from typing import Any

from agent_mux.events.base import CostRecord
from agent_mux.sdk.facts import Usage
from agent_mux_adapters._dialects.tolerant import dollars, optional_whole, whole


def usage_of(usage: Mapping[str, Any]) -> Usage | None:
    """Return the tokens of several model calls together; None when empty. `input` excludes cached tokens."""
    if not usage:
        return None
    return Usage(
        whole(usage.get("input")),
        whole(usage.get("output")),
        optional_whole(usage.get("reasoningTokens")),
        optional_whole(usage.get("cacheRead")),
        optional_whole(usage.get("cacheWrite")),
        of_one_call=False,
    )


def cost_of(usd: Any, usage: Usage | None) -> CostRecord | None:
    """Return the cost of this usage in USD; None when OpenClaw does not know it."""
    amount = dollars(usd)
    if usage is None or not amount:  # OpenClaw reports 0 for a model without prices
        return None
    return CostRecord(
        total_usd=amount,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        thinking_tokens=usage.thinking_tokens,
        cached_tokens=usage.cached_tokens,
        cache_creation_tokens=usage.cache_creation_tokens,
        source="native",
    )
