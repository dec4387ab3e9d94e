"""Run lifecycle and control events. Source: agent-events spec, section 20."""

from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from agent_mux.events.base import BaseEvent


class InterruptedEvent(BaseEvent, frozen=True):
    """The run ended by an interruption. Terminal. Source: agent-events spec, section 20."""

    type: ClassVar[Literal["interrupted"]] = "interrupted"


class AbortedEvent(BaseEvent, frozen=True):
    """The run was aborted. Terminal. Source: agent-events spec, section 20."""

    type: ClassVar[Literal["aborted"]] = "aborted"


class PausedEvent(BaseEvent, frozen=True):
    """The run is stopped and can go on. Source: agent-events spec, section 20."""

    type: ClassVar[Literal["paused"]] = "paused"


class ResumedEvent(BaseEvent, frozen=True):
    """The run goes on. Source: agent-events spec, section 20."""

    type: ClassVar[Literal["resumed"]] = "resumed"


class TimeoutEvent(BaseEvent, frozen=True):
    """The run ran out of time. Terminal. Source: agent-events spec, section 20."""

    type: ClassVar[Literal["timeout"]] = "timeout"

    kind: Literal["run", "inactivity"]
    """Which limit was hit."""


class TurnLimitEvent(BaseEvent, frozen=True):
    """The agent stopped at its turn limit. Terminal. Source: agent-events spec, section 20."""

    type: ClassVar[Literal["turn_limit"]] = "turn_limit"

    max_turns: Annotated[int, Meta(ge=0)]
    """The configured limit; 0 where unknown."""


class StreamFallbackEvent(BaseEvent, frozen=True):
    """A kind of output comes whole instead of streamed; once per kind. Source: agent-events spec, section 20."""

    type: ClassVar[Literal["stream_fallback"]] = "stream_fallback"

    capability: Literal["text", "tool_calls", "thinking"]
    """What is not streamed."""
    reason: str
    """Why."""
