"""Thinking events. Source: agent-events spec, section 8."""

from typing import ClassVar, Literal

from msgspec import field

from agent_mux.events.accumulated import Accumulated
from agent_mux.events.base import BaseEvent


class ThinkingStartEvent(BaseEvent, frozen=True):
    """A reasoning phase begins. Source: agent-events spec, section 8.1."""

    type: ClassVar[Literal["thinking_start"]] = "thinking_start"

    effort: str | None = None
    """The effective effort level, where the agent reports one."""


class ThinkingDeltaEvent(BaseEvent, frozen=True):
    """A fragment of the reasoning, in order. Source: agent-events spec, section 8.2."""

    type: ClassVar[Literal["thinking_delta"]] = "thinking_delta"

    delta: str
    """The new text."""
    accumulated_view: Accumulated = field(name="accumulated")
    """The text so far, as a view; read `accumulated` for the string."""

    @property
    def accumulated(self) -> str:
        """All text so far, this delta included."""
        return str(self.accumulated_view)


class ThinkingStopEvent(BaseEvent, frozen=True):
    """The reasoning phase is complete. Source: agent-events spec, section 8.3."""

    type: ClassVar[Literal["thinking_stop"]] = "thinking_stop"

    thinking: str
    """The whole reasoning text."""
