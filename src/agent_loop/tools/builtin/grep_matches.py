"""What a search finds: from the JSON lines of ripgrep (or of our own worker) to the files that count. No IO.

A file counts once its end was told, and only if it turned out to be text.
"""

import base64
from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec

MAX_WIDTH = 500
"""Characters of a line that are told."""


@dataclass(frozen=True, slots=True)
class Match:
    """One line."""

    number: int
    """From 1."""
    text: str


class _Value(msgspec.Struct):
    """Text, or Base64 where it is no UTF-8."""

    text: str | None = None
    bytes: str = ""

    def __str__(self) -> str:
        return base64.b64decode(self.bytes).decode("utf-8", "surrogateescape") if self.text is None else self.text


class _Data(msgspec.Struct):
    path: _Value = msgspec.field(default_factory=_Value)
    lines: _Value = msgspec.field(default_factory=_Value)
    line_number: int | None = None
    binary_offset: int | None = None


class _Message(msgspec.Struct):
    """What is not named here is not even decoded: a line may match a million times."""

    type: str
    data: _Data


_DECODER = msgspec.json.Decoder(_Message)


@dataclass(slots=True)
class FileMatches:
    """The lines of one file."""

    name: str
    """Below the directory that is searched."""
    count: int = 0
    matches: list[Match] = field(default_factory=list)
    """The first of them."""


@dataclass(slots=True)
class MatchReader:
    """Takes one line of output after the other."""

    keep: int
    """Lines of each file that are kept; all are counted."""
    counts: Callable[[str], bool]
    """Whether the file of this name is wanted."""
    current: FileMatches | None = None

    def receive(self, line: bytes) -> FileMatches | None:
        """A file, once it is whole. Lines that are no messages say nothing."""
        try:
            message = _DECODER.decode(line)
        except msgspec.DecodeError:
            return None
        if message.type == "match":
            self._add(message.data)
        return self._end(message.data) if message.type == "end" else None

    def _add(self, data: _Data) -> None:
        if self.current is None:
            self.current = FileMatches(str(data.path).removeprefix("./"))
        self.current.count += 1
        if len(self.current.matches) < self.keep:
            text = str(data.lines).removesuffix("\n").removesuffix("\r")
            cut = text if len(text) <= MAX_WIDTH else f"{text[:MAX_WIDTH]}..."
            self.current.matches.append(Match(data.line_number or 0, cut))

    def _end(self, data: _Data) -> FileMatches | None:
        found, self.current = self.current, None
        is_binary = data.binary_offset is not None
        return None if found is None or is_binary or not self.counts(found.name) else found
