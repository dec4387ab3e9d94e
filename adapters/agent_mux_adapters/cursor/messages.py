"""Messages of cursor-agent: fragments, steps, and text that is printed twice.

With `--stream-partial-output` the CLI prints everything twice, and no line states whether it repeats another. The CLI
collects the fragments of a segment and prints them again as one message: before a tool call (with the call's
`model_call_id`), before a retry or a query (exactly like a fragment), and at the end of the turn (without
`timestamp_ms`; in some versions the text of the whole turn). Without the flag these messages are all there is. So a
message is a repetition if it equals the collected fragments, and new otherwise.
"""

import msgspec

from agent_mux.sdk import facts
from agent_mux.sdk.streamed_text import missing_text

FRAGMENT_STARTS = (b'{"type":"thinking","subtype":"delta"', b'{"type":"assistant"')
"""Prefixes of lines that may be fragments. A fragment with another prefix is parsed as an object."""


class FragmentBlock(msgspec.Struct, gc=False):
    """A content block of a message."""

    type: str
    text: str


class FragmentMessage(msgspec.Struct, gc=False):
    """A message of the assistant."""

    content: list[FragmentBlock]


class CursorFragment(msgspec.Struct, gc=False):
    """A line of text or thinking. A line that repeats a complete message has a call id, or no time."""

    type: str
    subtype: str = ""
    text: str = ""
    message: FragmentMessage | None = None
    model_call_id: str | None = None
    timestamp_ms: int | None = None


decode_fragment = msgspec.json.Decoder(CursorFragment).decode


# -- steps


class CursorSteps:
    """The running model call.

    No line marks its start; `model_call_id` and the order of lines show it. The lines of a model call share its id, but
    its thinking, its fragments and the last message of a turn have none.
    """

    def __init__(self) -> None:
        self._begun = False
        self._call_id = ""
        """The id of the model call; empty until a line reports it."""
        self._returned = False
        """Whether a tool returned, so that further output belongs to another model call."""

    def note_output(self, call_id: str) -> tuple[facts.Fact, ...]:
        """Note output of the model, with its call id if known; begin a step when it is another model call."""
        is_other = bool(call_id and self._call_id and call_id != self._call_id)
        is_same = bool(call_id) and call_id == self._call_id
        if self._begun and not is_other and (is_same or not self._returned):
            self._call_id = self._call_id or call_id
            return ()
        self._begun, self._returned, self._call_id = True, False, call_id
        return (facts.StepBegin(),)

    @property
    def is_running(self) -> bool:
        """Whether output without an id belongs to the running model call."""
        return self._begun and not self._returned

    def set_call_id(self, call_id: str) -> None:
        """Set the id of the running model call from a line that repeats its text."""
        if self.is_running:
            self._call_id = self._call_id or call_id

    def tool_returned(self) -> None:
        """Note that a tool call ended."""
        self._returned = True

    def turn_over(self) -> None:
        """Reset the state for the next turn."""
        self._begun = self._returned = False
        self._call_id = ""


# -- text

Facts = tuple[facts.Fact, ...]

REPEATS = "the text that was streamed, once more"
_REPEATED = (facts.Ignored("assistant", REPEATS),)
_EMPTY = (facts.Ignored("assistant", "an empty message"),)


class _TextPieces:
    """A text in pieces, which compares in constant time when the lengths differ."""

    __slots__ = ("_pieces", "length")

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self.length = 0

    def append(self, text: str) -> None:
        self._pieces.append(text)
        self.length += len(text)

    def clear(self) -> None:
        self._pieces.clear()
        self.length = 0

    def equals(self, text: str) -> bool:
        return len(text) == self.length and missing_text(text, "".join(self._pieces)) is not None

    def begins(self, text: str) -> bool:
        return 0 < self.length < len(text) and missing_text(text, "".join(self._pieces)) is not None


class CursorMessages:
    """The text of one turn, with repetitions removed."""

    def __init__(self) -> None:
        self.has_text = False
        """Whether the turn had any text."""
        self._segment = _TextPieces()
        """The fragments that no message has repeated."""
        self._turn = _TextPieces()
        """All text that was streamed in this turn."""
        self._held = ""
        """A fragment equal to the segment, which may repeat it; the next line decides."""

    def fragment(self, text: str) -> Facts:
        """Read a line with a time and without a call id."""
        if not text:
            return _EMPTY
        if self._segment.equals(text):
            self._held = text
            return (facts.Ignored("assistant", f"perhaps {REPEATS}; if not, emitted with the next line"),)
        return self._new(text)

    def message(self, text: str) -> Facts:
        """Read a whole message: a line with a call id or without a time."""
        if not text:
            return _EMPTY
        is_open, repeats = self._segment.length > 0, self._segment.equals(text) or self._turn.equals(text)
        known = self._segment.length if self._segment.begins(text) else 0
        self._segment.clear()
        if repeats:
            return (facts.TextEnd(),) if is_open else _REPEATED
        self.has_text = True
        if known:  # the message continues the streamed part
            return (facts.TextDelta(text[known:]), facts.TextEnd())
        return (facts.WholeText(text),)

    @property
    def holds(self) -> bool:
        """Whether a held fragment waits for `release`."""
        return bool(self._held)

    def release(self, *, repeated: bool) -> Facts:
        """Decide about the held fragment by the line after it.

        `repeated` is true if the line is of a type before which the CLI repeats the segment.
        """
        text, self._held = self._held, ""
        if repeated:
            self._segment.clear()
            return (facts.TextEnd(),)
        return self._new(text)

    def turn_over(self) -> None:
        """Reset the state for the next turn."""
        self._segment.clear()
        self._turn.clear()
        self.has_text = False

    def _new(self, text: str) -> Facts:
        self.has_text = True
        self._segment.append(text)
        self._turn.append(text)
        return (facts.TextDelta(text),)
