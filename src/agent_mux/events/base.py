"""What every event has, and the scalar types events are made of. Source: agent-events spec, section 2.

Cost and token events, and the record they share. Source: agent-events spec, sections 3 and 17.
"""

import re
from typing import Annotated, ClassVar, Literal

import msgspec
from msgspec import Meta

Milliseconds = Annotated[int, Meta(ge=0, description="A duration in milliseconds.")]
Tokens = Annotated[int, Meta(ge=0, description="A number of tokens.")]
Bytes = Annotated[int, Meta(ge=0, description="A number of bytes.")]
Index = Annotated[int, Meta(ge=0, description="Zero-based.")]
EpochMilliseconds = Annotated[int, Meta(gt=0, description="Milliseconds since the Unix epoch.")]
Dollars = Annotated[float, Meta(ge=0, description="US dollars.")]


def wire_type(class_name: str) -> str:
    """The `type` literal of an event class: `McpToolCallStartEvent` -> `mcp_tool_call_start`."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", class_name.removesuffix("Event")).lower()


class Identity(
    msgspec.Struct,
    frozen=True,
    rename="camel",
    omit_defaults=True,
    tag_field="type",
    tag=wire_type,
    gc=False,
):
    """Who said it and when. These three come first in every event, so that they can be given by position."""

    type: ClassVar[str] = ""

    run_id: str
    """ULID of the run (26 characters, Crockford Base32)."""
    agent: str
    """Registered name of the agent."""
    timestamp: EpochMilliseconds
    """When the native output arrived; never decreases within a run."""


class BaseEvent(Identity, frozen=True, kw_only=True):
    """The fields that all 67 events share. Source: agent-events spec, section 2."""

    raw: str | None = None
    """The native line behind this event; only in debug mode."""
    subagent_id: str | None = None
    """The sub-agent inside which this happened; only with `include_subagent_events`."""


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
