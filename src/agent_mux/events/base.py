"""What every event has, and the scalar types events are made of. Source: agent-events spec, section 2."""

import re
from typing import Annotated, ClassVar

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
