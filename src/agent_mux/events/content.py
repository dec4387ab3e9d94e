"""Text that grows delta by delta, shared by the events that show it so far.

`text_delta.accumulated` and its like are required on the wire and quadratic when stored. Here each event keeps a
view on one growing buffer, O(1) in time and memory, which becomes a string only when somebody reads it.


Text streaming events. Source: agent-events spec, section 7.


Thinking events. Source: agent-events spec, section 8.


Images events. Source: agent-events spec, section 16.
"""

from typing import Any, ClassVar, Literal

from msgspec import field

from agent_mux.events.base import BaseEvent

_new = object.__new__


class GrowingText:
    """An append-only text, kept as UTF-8: one byte per ASCII character, whatever the number of deltas."""

    __slots__ = ("_utf8",)

    def __init__(self) -> None:
        self._utf8 = bytearray()

    def append(self, delta: str) -> "Accumulated":
        """Add a delta and return the view that ends with it."""
        utf8 = self._utf8
        utf8 += delta.encode("utf-8", "surrogatepass")
        # Every delta has a view: made without a call of `__init__`, which costs as much as all the rest.
        view = _new(Accumulated)
        view._utf8, view._end = utf8, len(utf8)  # noqa: SLF001  # its own kind
        return view

    def __str__(self) -> str:
        return self._utf8.decode("utf-8", "surrogatepass")

    def __len__(self) -> int:
        return len(self._utf8)


class Accumulated:
    """The first `end` bytes of a growing text, as a string on demand. Immutable; equal to a string with its text."""

    __slots__ = ("_end", "_utf8")

    _utf8: bytearray
    _end: int

    def extends(self, before: "Accumulated", delta: str) -> bool:
        """This is `before` and then `delta`: O(delta) for views on one text, O(text) for others."""
        added = delta.encode("utf-8", "surrogatepass")
        if self._utf8 is not before._utf8:  # noqa: SLF001  # its own kind
            return str(self) == str(before) + delta
        start = self._end - len(added)
        return len(before) == start and self._utf8[start : self._end] == added

    def __str__(self) -> str:
        return self._utf8[: self._end].decode("utf-8", "surrogatepass")

    def __repr__(self) -> str:
        return repr(str(self))

    def __len__(self) -> int:
        """In bytes of UTF-8, as of the growing text."""
        return self._end

    def __eq__(self, other: object) -> bool:
        return str(self) == str(other) if isinstance(other, Accumulated | str) else NotImplemented

    def __hash__(self) -> int:
        return hash(str(self))

    def __copy__(self) -> "Accumulated":
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> "Accumulated":
        return self

    @classmethod
    def of(cls, text: str) -> "Accumulated":
        """A view on a complete text."""
        return GrowingText().append(text)


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


class ImageOutputEvent(BaseEvent, frozen=True):
    """The agent or a tool produced an image. Source: agent-events spec, section 16."""

    type: ClassVar[Literal["image_output"]] = "image_output"

    mime_type: str
    """For example `image/png`."""
    base64: str | None = None
    """The image itself."""
    file_path: str | None = None
    """Where it was written."""


class ImageInputAckEvent(BaseEvent, frozen=True):
    """The agent took an input image. Source: agent-events spec, section 16."""

    type: ClassVar[Literal["image_input_ack"]] = "image_input_ack"

    mime_type: str
    """For example `image/png`."""
