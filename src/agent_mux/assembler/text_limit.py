"""Texts of events, cut at the limit of their run. See docs/spec/events.md, section 24.6.

The whole text is in the journal. The limit is part of the stream's context, which the journal stores, so that derived
events are cut at the same byte.
"""

import sys
from collections.abc import Mapping
from typing import Any

from agent_mux._util.sanitize import to_json
from agent_mux.events.content import Accumulated, GrowingText
from agent_mux.events.run import LogEvent
from agent_mux.events.tools import (
    FilePatchEvent,
    McpToolCallStartEvent,
    McpToolErrorEvent,
    McpToolResultEvent,
    ShellStartEvent,
    ShellStderrDeltaEvent,
    ShellStdoutDeltaEvent,
    SubagentErrorEvent,
    SubagentResultEvent,
    SubagentSpawnEvent,
    ToolCallReadyEvent,
    ToolCallStartEvent,
    ToolErrorEvent,
    ToolResultEvent,
)

PASSED_ON = -1
"""A limit for reading texts by range: fragments are emitted whole, and nothing is accumulated."""
LONGEST_CHARACTER = 4  # bytes of UTF-8
_COUNTED_AT_ONCE = 1 << 16
_SHORT = 64
"""Characters of a text inside a structure that is never cut: names and types. Every value counts as much."""
_DEEPEST = 100

WHOLE_TEXTS: Mapping[type, int] = {
    ToolCallStartEvent: 2, ToolCallReadyEvent: 2, ToolResultEvent: 2, ToolErrorEvent: 2,
    McpToolCallStartEvent: 3, McpToolResultEvent: 3, McpToolErrorEvent: 3,
    SubagentSpawnEvent: 2, SubagentResultEvent: 2, SubagentErrorEvent: 2,
    FilePatchEvent: 1, ShellStartEvent: 0, ShellStdoutDeltaEvent: 0, ShellStderrDeltaEvent: 0, LogEvent: 1,
}  # fmt: skip
"""By class of event: the position of the text or structure that may be long, among the event's own fields."""


class LimitedText(GrowingText):
    """A growing text that keeps its beginning, and the size of what it left out."""

    __slots__ = ("_limit", "left_out")

    def __init__(self, limit: int) -> None:
        """`limit`: bytes of UTF-8; 0: none."""
        super().__init__()
        self._limit = limit or sys.maxsize
        self.left_out = 0
        """Bytes of UTF-8 that were not kept."""

    def fit(self, delta: str) -> str:
        """Return what may be appended of this fragment: all, its beginning, or nothing once the text was cut."""
        room = self._limit - len(self._utf8)
        if LONGEST_CHARACTER * len(delta) <= room and not self.left_out:
            return delta
        fitting, left_out = cut_text(delta, 0 if self.left_out else room)
        self.left_out += left_out
        return fitting


class PassedText(LimitedText):
    """A text that is passed on fragment by fragment and not kept."""

    __slots__ = ()

    def append(self, delta: str) -> Accumulated:  # noqa: ARG002  # the text that is not kept
        """Return a view on an empty text."""
        return super().append("")


def new_text(limit: int) -> LimitedText:
    """Create an empty text with the limit of a stream."""
    return PassedText(0) if limit == PASSED_ON else LimitedText(limit)


def cut_text(text: str, limit: int) -> tuple[str, int]:
    """Return the beginning of a text in at most `limit` bytes of UTF-8, and the number of bytes that follow it."""
    if len(text) * LONGEST_CHARACTER <= limit:
        return text, 0
    beginning = text[:limit].encode("utf-8", "surrogatepass")  # not the whole text, which may be far longer
    if len(beginning) > limit:
        end = limit
        while end and beginning[end] & 0xC0 == 0x80:  # inside a character
            end -= 1
        kept = beginning[:end].decode("utf-8", "surrogatepass")
    else:
        kept = text[:limit]
    return kept, size_of(text, len(kept))


def size_of(text: str, start: int = 0) -> int:
    """Return the length in bytes of UTF-8 from a character on, without encoding a long text at once."""
    if text.isascii():
        return len(text) - start
    positions = range(start, len(text), _COUNTED_AT_ONCE)
    return sum(len(text[at : at + _COUNTED_AT_ONCE].encode("utf-8", "surrogatepass")) for at in positions)


def cut_value(value: Any, limit: int) -> tuple[Any, int]:
    """Return a text, or a structure with its texts, within the limit, and the number of bytes left out.

    Long texts are cut in order, and their places stay. Where too many short values exceed the limit, or a structure is
    too deep, it becomes the beginning of its JSON text.
    """
    if isinstance(value, str):
        return cut_text(value, limit)
    if not isinstance(value, dict | list | tuple):
        return value, 0
    cutter = _StructureCutter(limit)
    try:
        cut = cutter.cut(value, 0)
    except _TooManyValuesError:
        encoded = to_json(value)
        return cut_text(encoded, limit) if len(encoded) > limit else (value, 0)
    return (cut, cutter.left_out) if cutter.left_out else (value, 0)


class _TooManyValuesError(Exception):
    pass


class _StructureCutter:
    def __init__(self, limit: int) -> None:
        self._room = limit
        self._values_left = limit // _SHORT
        self.left_out = 0

    def cut(self, value: Any, depth: int) -> Any:
        self._values_left -= 1
        if self._values_left < 0 or depth > _DEEPEST:
            raise _TooManyValuesError
        if isinstance(value, str) and len(value) > _SHORT:
            kept, left_out = cut_text(value, self._room)
            self._room -= size_of(kept)
            self.left_out += left_out
            return kept
        if isinstance(value, dict):
            return {key: self.cut(item, depth + 1) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.cut(item, depth + 1) for item in value]
        return value
