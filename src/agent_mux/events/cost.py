"""Cost and token events, and the record they share. Source: agent-events spec, sections 3 and 17."""

from typing import ClassVar, Literal

import msgspec

from agent_mux.events.base import BaseEvent, Dollars, Tokens

CostSource = Literal["native", "computed", "unknown"]


class CostRecord(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """What a run, a turn or a sub-agent used. Source: agent-events spec, section 3, plus the last two fields."""

    total_usd: Dollars
    """US dollars; 0 when unknown, see `source`."""
    input_tokens: Tokens
    """Input tokens that were neither read from nor written to a cache."""
    output_tokens: Tokens
    """Output tokens, thinking included."""
    thinking_tokens: Tokens | None = None
    """Those of the output tokens that were thinking, where reported."""
    cached_tokens: Tokens | None = None
    """Input tokens read from a cache, where reported."""
    cache_creation_tokens: Tokens | None = None
    """Input tokens written to a cache, where reported."""
    source: CostSource | None = None
    """Where `total_usd` comes from: the agent itself, a price list, or nowhere (then it is 0 and means nothing)."""


class CostEvent(BaseEvent, frozen=True):
    """The cost of the run so far. Source: agent-events spec, section 17.1."""

    type: ClassVar[Literal["cost"]] = "cost"

    cost: CostRecord
    """Cumulative over this run; the last one is the total."""


class TokenUsageEvent(BaseEvent, frozen=True):
    """The tokens of one model call, or of one turn where the agent reports no finer. Source: section 17.2."""

    type: ClassVar[Literal["token_usage"]] = "token_usage"

    input_tokens: Tokens
    """Input tokens that were neither read from nor written to a cache."""
    output_tokens: Tokens
    """Output tokens, thinking included."""
    thinking_tokens: Tokens | None = None
    """Those of the output tokens that were thinking, where reported."""
    cached_tokens: Tokens | None = None
    """Input tokens read from a cache, where reported."""
