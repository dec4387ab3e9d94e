"""The fields of every event, the scalar types of fields, and the cost and token events.

See docs/spec/events.md, sections 2, 3 and 17.
"""

import re
from typing import Annotated, ClassVar, Literal

import msgspec
from msgspec import Meta

from agent_mux._util.pydantic_support import PydanticCompatible

Milliseconds = Annotated[int, Meta(ge=0, description="A duration in milliseconds.")]
Tokens = Annotated[int, Meta(ge=0, description="A number of tokens.")]
Bytes = Annotated[int, Meta(ge=0, description="A number of bytes.")]
Index = Annotated[int, Meta(ge=0, description="Zero-based index.")]
TruncatedBytes = Annotated[
    Annotated[int, Meta(gt=0)] | None,
    Meta(description="Bytes of UTF-8 that were left out after the limit `max_text_bytes`; absent when none were."),
]
EpochMilliseconds = Annotated[int, Meta(gt=0, description="Milliseconds since the Unix epoch.")]
Fraction = Annotated[float, Meta(ge=0, le=1, description="A part of a whole, 0 to 1.")]
Dollars = Annotated[float, Meta(ge=0, description="US dollars.")]


def wire_type(class_name: str) -> str:
    """Return the `type` literal of an event class: `McpToolCallStartEvent` -> `mcp_tool_call_start`."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", class_name.removesuffix("Event")).lower()


class Identity(
    PydanticCompatible,
    msgspec.Struct,
    frozen=True,
    rename="camel",
    omit_defaults=True,
    tag_field="type",
    tag=wire_type,
    gc=False,
):
    """The leading fields of every event, which can be passed by position."""

    type: ClassVar[str] = ""

    run_id: Annotated[str, Meta(description="ULID of the run (26 characters of Crockford's Base32).")]
    agent: Annotated[str, Meta(description="Registered name of the agent.")]
    timestamp: Annotated[
        EpochMilliseconds,
        Meta(
            description="Arrival of the native output, in milliseconds since the Unix epoch; never decreases in a run."
        ),
    ]


class BaseEvent(Identity, frozen=True, kw_only=True):
    """The fields that all events share. See docs/spec/events.md, section 2."""

    raw: Annotated[
        str | None, Meta(description="The native line from which the event was made; only in debug mode.")
    ] = None
    subagent_id: Annotated[
        str | None,
        Meta(description=("Id of the sub-agent inside which the event occurred; only with `include_subagent_events`.")),
    ] = None


StopReason = Literal["end", "length", "filtered", "tool_use"]
"""Why an answer of the model ended: complete, cut at a token limit, blocked by the provider, or for tool calls."""
CostSource = Literal["native", "computed", "unknown"]


class CostRecord(PydanticCompatible, msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """The tokens and the cost of a run, a turn or a sub-agent. See docs/spec/events.md, section 3."""

    total_usd: Annotated[Dollars, Meta(description="US dollars; 0 when unknown, see `source`.")]
    input_tokens: Annotated[
        Tokens, Meta(description="Input tokens that were neither read from nor written to a cache.")
    ]
    output_tokens: Annotated[Tokens, Meta(description="Output tokens, thinking included.")]
    thinking_tokens: Annotated[
        Tokens | None, Meta(description="The part of the output tokens used for thinking, where reported.")
    ] = None
    cached_tokens: Annotated[Tokens | None, Meta(description="Input tokens read from a cache, where reported.")] = None
    cache_creation_tokens: Annotated[
        Tokens | None, Meta(description="Input tokens written to a cache, where reported.")
    ] = None
    source: Annotated[
        CostSource | None,
        Meta(
            description=(
                "Source of `total_usd`: the agent (`native`), a price list (`computed`), or none (`unknown`, then"
                " it is 0)."
            )
        ),
    ] = None


class QuotaWindow(PydanticCompatible, msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """One window of the provider's quota, such as the last five hours. See docs/spec/events.md, section 17.2."""

    window: Annotated[
        str, Meta(description="Name of the window: `five_hour`, `seven_day`, or the provider's own name.")
    ]
    used_fraction: Annotated[
        Fraction | None, Meta(description="The used part of the quota, 0 to 1, where reported.")
    ] = None
    resets_at: Annotated[
        EpochMilliseconds | None,
        Meta(description="When the window resets, in milliseconds since the Unix epoch, where reported."),
    ] = None

    @property
    def is_exhausted(self) -> bool:
        """Whether nothing is left of the quota."""
        return self.used_fraction is not None and self.used_fraction >= 1


class CostEvent(BaseEvent, frozen=True):
    """The cost of the run so far. See docs/spec/events.md, section 17.1."""

    type: ClassVar[Literal["cost"]] = "cost"

    cost: Annotated[CostRecord, Meta(description="Cumulative cost of the run; the last `cost` event has the total.")]


class TokenUsageEvent(BaseEvent, frozen=True):
    """The tokens of one model call, or of one turn if the agent reports no finer figures; or a report of the quota.

    See docs/spec/events.md, section 17.2.
    """

    type: ClassVar[Literal["token_usage"]] = "token_usage"

    input_tokens: Annotated[
        Tokens, Meta(description="Input tokens that were neither read from nor written to a cache.")
    ]
    output_tokens: Annotated[Tokens, Meta(description="Output tokens, thinking included.")]
    thinking_tokens: Annotated[
        Tokens | None, Meta(description="The part of the output tokens used for thinking, where reported.")
    ] = None
    cached_tokens: Annotated[Tokens | None, Meta(description="Input tokens read from a cache, where reported.")] = None
    quota: Annotated[
        tuple[QuotaWindow, ...],
        Meta(description="All windows of the provider's quota, in an event that reports it; its counts are then 0."),
    ] = ()
