"""Text streaming events. Source: agent-events spec, section 7."""

from typing import ClassVar, Literal

from msgspec import field

from agent_mux.events.accumulated import Accumulated
from agent_mux.events.base import BaseEvent


class MessageStartEvent(BaseEvent, frozen=True):
    """The agent begins to answer in text. Source: agent-events spec, section 7.1."""

    type: ClassVar[Literal["message_start"]] = "message_start"


class TextDeltaEvent(BaseEvent, frozen=True):
    """A fragment of the answer, in order. Source: agent-events spec, section 7.2."""

    type: ClassVar[Literal["text_delta"]] = "text_delta"

    delta: str
    """The new text."""
    accumulated_view: Accumulated = field(name="accumulated")
    """The text so far, as a view; read `accumulated` for the string."""

    @property
    def accumulated(self) -> str:
        """All text so far, this delta included."""
        return str(self.accumulated_view)


class MessageStopEvent(BaseEvent, frozen=True):
    """The message is complete. Source: agent-events spec, section 7.3."""

    type: ClassVar[Literal["message_stop"]] = "message_stop"

    text: str
    """The whole message."""
