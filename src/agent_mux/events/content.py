"""Accumulated text, and the text, thinking and image events. See docs/spec/events.md, sections 7, 8 and 16.

`text_delta.accumulated` and similar fields are required on the wire and would take quadratic memory if stored. Each
event has a view on one growing buffer instead, with constant cost per delta; the view becomes a string when it is read.
"""

from typing import Annotated, Any, ClassVar, Literal

from msgspec import Meta, field

from agent_mux.events.base import BaseEvent, TruncatedBytes

_new = object.__new__


class GrowingText:
    """An append-only text, stored as UTF-8: one byte per ASCII character, whatever the number of deltas."""

    __slots__ = ("_utf8",)

    def __init__(self) -> None:
        self._utf8 = bytearray()

    def append(self, delta: str) -> "Accumulated":
        """Append a delta and return the view that ends with it."""
        utf8 = self._utf8
        utf8 += delta.encode("utf-8", "surrogatepass")
        # Every delta creates a view. Calling `__init__` would double the cost of this method.
        view = _new(Accumulated)
        view._utf8, view._end = utf8, len(utf8)  # noqa: SLF001  # same module
        return view

    def __str__(self) -> str:
        return self._utf8.decode("utf-8", "surrogatepass")

    def __len__(self) -> int:
        return len(self._utf8)


class Accumulated:
    """An immutable view on the beginning of a growing text. Equal to a string with the same text."""

    __slots__ = ("_end", "_utf8")

    _utf8: bytearray
    _end: int

    def extends(self, before: "Accumulated", delta: str) -> bool:
        """Return whether this text is `before` plus `delta`, in O(delta) for views on the same text, else O(text)."""
        added = delta.encode("utf-8", "surrogatepass")
        if self._utf8 is not before._utf8:  # noqa: SLF001  # same class
            return str(self) == str(before) + delta
        start = self._end - len(added)
        return len(before) == start and self._utf8[start : self._end] == added

    def __str__(self) -> str:
        return self._utf8[: self._end].decode("utf-8", "surrogatepass")

    def __repr__(self) -> str:
        return repr(str(self))

    def __len__(self) -> int:
        """Return the length in bytes of UTF-8, like the length of the growing text."""
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
        """Return a view on a complete text."""
        return GrowingText().append(text)


class MessageStartEvent(BaseEvent, frozen=True):
    """A text message of the agent starts. See docs/spec/events.md, section 7.1."""

    type: ClassVar[Literal["message_start"]] = "message_start"


class TextDeltaEvent(BaseEvent, frozen=True):
    """A fragment of a text message. See docs/spec/events.md, section 7.2."""

    type: ClassVar[Literal["text_delta"]] = "text_delta"

    delta: Annotated[str, Meta(description="The new text.")]
    accumulated_view: Annotated[
        Accumulated, Meta(description="The text of the message so far, this delta included.")
    ] = field(name="accumulated")

    @property
    def accumulated(self) -> str:
        """The accumulated text as a string."""
        return str(self.accumulated_view)


class MessageStopEvent(BaseEvent, frozen=True):
    """A text message is complete. See docs/spec/events.md, section 7.3."""

    type: ClassVar[Literal["message_stop"]] = "message_stop"

    text: Annotated[str, Meta(description="The whole text of the message.")]
    abandoned: Annotated[
        bool | None,
        Meta(description="The model call broke off and is repeated; the text is not part of the result."),
    ] = None
    truncated_bytes: TruncatedBytes = None


class ThinkingStartEvent(BaseEvent, frozen=True):
    """A thinking block of the agent starts. See docs/spec/events.md, section 8.1."""

    type: ClassVar[Literal["thinking_start"]] = "thinking_start"

    effort: Annotated[str | None, Meta(description="The effective effort level, where the agent reports it.")] = None


class ThinkingDeltaEvent(BaseEvent, frozen=True):
    """A fragment of a thinking block. See docs/spec/events.md, section 8.2."""

    type: ClassVar[Literal["thinking_delta"]] = "thinking_delta"

    delta: Annotated[str, Meta(description="The new text.")]
    accumulated_view: Annotated[
        Accumulated, Meta(description="The text of the thinking block so far, this delta included.")
    ] = field(name="accumulated")

    @property
    def accumulated(self) -> str:
        """The accumulated text as a string."""
        return str(self.accumulated_view)


class ThinkingStopEvent(BaseEvent, frozen=True):
    """A thinking block is complete. See docs/spec/events.md, section 8.3."""

    type: ClassVar[Literal["thinking_stop"]] = "thinking_stop"

    thinking: Annotated[str, Meta(description="The whole text of the thinking block.")]
    truncated_bytes: TruncatedBytes = None


class ImageOutputEvent(BaseEvent, frozen=True):
    """The agent or a tool produced an image. See docs/spec/events.md, section 16."""

    type: ClassVar[Literal["image_output"]] = "image_output"

    mime_type: Annotated[str, Meta(description="MIME type, for example `image/png`.")]
    base64: Annotated[str | None, Meta(description="The image as base64.")] = None
    file_path: Annotated[str | None, Meta(description="Path of the file to which the image was written.")] = None


class ImageInputAckEvent(BaseEvent, frozen=True):
    """The agent accepted an input image. See docs/spec/events.md, section 16."""

    type: ClassVar[Literal["image_input_ack"]] = "image_input_ack"

    mime_type: Annotated[str, Meta(description="MIME type, for example `image/png`.")]
