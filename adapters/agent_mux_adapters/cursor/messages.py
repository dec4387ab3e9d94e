"""The fragments of cursor-agent's stream: the one typed decode of the hot path. All other lines are read as objects."""

import msgspec

from agent_mux import facts

FRAGMENT_STARTS = (b'{"type":"thinking","subtype":"delta"', b'{"type":"assistant"')
"""How a line that may be a fragment begins. Whatever begins otherwise is read as an object, fragment or not."""


class FragmentBlock(msgspec.Struct, gc=False):
    """A content block of a message."""

    type: str
    text: str


class FragmentMessage(msgspec.Struct, gc=False):
    """A message of the assistant."""

    content: list[FragmentBlock]


class CursorFragment(msgspec.Struct, gc=False):
    """A line of text or thinking. Those of a message that is complete have a call id, or no time at all."""

    type: str
    subtype: str = ""
    text: str = ""
    message: FragmentMessage | None = None
    model_call_id: str | None = None
    timestamp_ms: int | None = None


decode_fragment = msgspec.json.Decoder(CursorFragment).decode


# TODO Where model calls begin. The stream does not say it; `model_call_id` and the order of lines show it.
#
# Lines of one model call share its id, but its thinking, its fragments and the last message of a turn have none.


class CursorSteps:
    """The model call that is going on."""

    def __init__(self) -> None:
        self._begun = False
        self._call_id = ""
        """Of the model call; empty while no line has told."""
        self._returned = False
        """A tool returned: whatever the model says now, it says in another call."""

    def content(self, call_id: str) -> tuple[facts.Fact, ...]:
        """The model says something or calls a tool; `call_id` where the line tells it. Says when a call begins."""
        is_other = bool(call_id and self._call_id and call_id != self._call_id)
        is_same = bool(call_id) and call_id == self._call_id
        if self._begun and not is_other and (is_same or not self._returned):
            self._call_id = self._call_id or call_id
            return ()
        self._begun, self._returned, self._call_id = True, False, call_id
        return (facts.StepBegin(),)

    @property
    def goes_on(self) -> bool:
        """Content without an id belongs to the call that was begun."""
        return self._begun and not self._returned

    def named(self, call_id: str) -> None:
        """The text of the call that goes on is repeated, with its id."""
        if self.goes_on:
            self._call_id = self._call_id or call_id

    def tool_returned(self) -> None:
        """A tool call is over."""
        self._returned = True

    def turn_over(self) -> None:
        """What follows belongs to another turn."""
        self._begun = self._returned = False
        self._call_id = ""


# TODO What the model says. With `--stream-partial-output` everything is said twice, and no line says whether it repeats.
#
# The CLI keeps the fragments of a segment and prints them again as one message: before a tool call (with the call's
# `model_call_id`), before a retry or a query (nothing tells it from a fragment), and at the end of the turn (without
# `timestamp_ms`; in some versions the text of the whole turn). Without the flag these messages are all there is.
# So a message counts as a repetition when it says what the fragments said, and else as new.

Facts = tuple[facts.Fact, ...]

REPEATS = "the text that was streamed, once more"
_REPEATED = (facts.Ignored("assistant", REPEATS),)
_EMPTY = (facts.Ignored("assistant", "an empty message"),)


class _TextPieces:
    """Text in pieces; compared in constant time where the lengths differ."""

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
        return len(text) == self.length and text == "".join(self._pieces)

    def begins(self, text: str) -> bool:
        return 0 < self.length < len(text) and text.startswith("".join(self._pieces))


class CursorMessages:
    """The text of one turn."""

    def __init__(self) -> None:
        self.said = False
        """Something was said in this turn."""
        self._segment = _TextPieces()
        """The fragments that no message has repeated."""
        self._turn = _TextPieces()
        """All that was streamed in this turn."""
        self._held = ""
        """A fragment that may be the segment once more; the next line tells."""

    def fragment(self, text: str) -> Facts:
        """A line with a time and without a call id."""
        if not text:
            return _EMPTY
        if self._segment.equals(text):
            self._held = text
            return (facts.Ignored("assistant", f"perhaps {REPEATS}; if not, told with the next line"),)
        return self._new(text)

    def message(self, text: str) -> Facts:
        """A line with a call id, or without a time: a message as a whole."""
        if not text:
            return _EMPTY
        is_open, repeats = self._segment.length > 0, self._segment.equals(text) or self._turn.equals(text)
        known = self._segment.length if self._segment.begins(text) else 0
        self._segment.clear()
        if repeats:
            return (facts.TextEnd(),) if is_open else _REPEATED
        self.said = True
        if known:  # its beginning was streamed, and not all of it
            return (facts.TextDelta(text[known:]), facts.TextEnd())
        return (facts.Text(text),)

    @property
    def holds(self) -> bool:
        """`release` has something to decide."""
        return bool(self._held)

    def release(self, *, repeated: bool) -> Facts:
        """The line after the held fragment came. `repeated`: it is one before which the segment is repeated."""
        text, self._held = self._held, ""
        if repeated:
            self._segment.clear()
            return (facts.TextEnd(),)
        return self._new(text)

    def turn_over(self) -> None:
        """What follows belongs to another turn."""
        self._segment.clear()
        self._turn.clear()
        self.said = False

    def _new(self, text: str) -> Facts:
        self.said = True
        self._segment.append(text)
        self._turn.append(text)
        return (facts.TextDelta(text),)
