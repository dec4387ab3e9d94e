"""Fit text into the columns of a terminal: widths, wrapping between words, cutting, folding."""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from typing import NamedTuple, TextIO

from agent_mux._util.sanitize import sanitize
from agent_mux.cli.terminal import is_terminal, size_of
from agent_mux.views import BoundedText

TAB = 4
_STYLE = re.compile(r"\x1b\[[\d;]*m")
_WORDS = re.compile(r"(\s+)")


class Symbols(NamedTuple):
    """The characters of the view, for terminals with and without Unicode."""

    call: str = "●"
    bar: str = "│"
    corner: str = "└"
    dot: str = "·"
    more: str = "…"
    thought: str = "∴"
    spinner: str = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"


ASCII = Symbols("*", "|", "`", "-", "...", ".", "|/-\\")


def symbols_for(encoding: str | None) -> Symbols:
    """Return the characters that an encoding has."""
    try:
        "".join(Symbols()).encode(encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return ASCII
    return Symbols()


def cell_width(text: str) -> int:
    """Return the number of columns that a text takes, styles excluded."""
    if text.isascii():
        return len(_STYLE.sub("", text)) if "\x1b" in text else len(text)
    return sum(_width_of(character) for character in _STYLE.sub("", text))


def _width_of(character: str) -> int:
    if character.isascii():
        return 1
    if unicodedata.combining(character) or unicodedata.category(character) in {"Mn", "Me", "Cf"}:
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def cut(text: str, width: int, more: str = "…") -> str:
    """Return a text without styles that takes at most `width` columns."""
    if cell_width(text) <= width:
        return text
    room = max(width - len(more), 0)
    return _prefix(text, room) + more[: max(width, 0)]


def _prefix(text: str, width: int) -> str:
    used = 0
    for position, character in enumerate(text):
        used += _width_of(character)
        if used > width:
            return text[:position]
    return text


def wrap(text: str, width: int) -> list[str]:
    """Break a line between words. A word that is longer than a line is not broken: the terminal wraps it."""
    rows: list[str] = []
    row, used = "", 0
    for part in _WORDS.split(text.expandtabs(TAB)):
        size = cell_width(part)
        if used and used + size > width and part.strip():
            rows.append(row.rstrip())
            row, used = "", 0
        if part and (part.strip() or row or not rows):
            row, used = row + part, used + size
    return [*rows, row.rstrip()]


def indented_rows(text: str, width: int) -> list[str]:
    """Break a line between words. All rows but the first are indented by two columns."""
    first, *rest = wrap(text, width)
    return [first, *(f"  {row}" for row in wrap(" ".join(rest), width - 2) if row)]


def prose_rows(text: str, stream: TextIO, *, margin: int = 0) -> list[str]:
    """Break a line as `indented_rows` does if the stream is a terminal, of whose columns `margin` are used already."""
    return indented_rows(text, size_of(stream).columns - margin) if is_terminal(stream) else [text]


def break_lines(text: str, width: int) -> list[str]:
    """Break a line into rows of exactly `width` columns at most, between words where there are any."""
    rows: list[str] = []
    for row in wrap(text, width):
        rows += split_columns(row, width)
    return rows


def split_columns(text: str, width: int) -> list[str]:
    """Split a line into parts of at most `width` columns, which is 2 or more, and keep every character."""
    parts: list[str] = []
    while cell_width(text) > width:
        part = _prefix(text, width)
        parts.append(part)
        text = text[len(part) :]
    return [*parts, text]


def clean_line(line: str) -> str:
    """Return one line of output as a terminal leaves it: sanitized, the last state of a progress line, without tabs."""
    if "\r" in line:
        line = line.rstrip("\r").rpartition("\r")[2]
    return sanitize(line).expandtabs(TAB).rstrip()


class Folded(NamedTuple):
    """The first and the last lines of a text, and the number of lines between them."""

    first: list[str]
    hidden: int
    last: list[str]

    def rows(self, more: str) -> Iterator[str]:
        """Yield the lines, with a line that counts the hidden ones."""
        yield from self.first
        if self.hidden:
            yield f"{more} {self.hidden:,} more line{'' if self.hidden == 1 else 's'}"
        yield from self.last


def fold(text: BoundedText, head: int, tail: int) -> Folded:
    """Fold a text to `head` lines of its beginning and `tail` lines of its end."""
    ends_line = (text.tail or text.head).endswith("\n")
    total = text.newlines + (0 if ends_line or not text else 1)
    if not text.omitted:
        return fold_lines((text.head + text.tail).split("\n")[:total], head, tail)
    first = text.head.split("\n")[:-1][:head]
    last = text.tail.removesuffix("\n").split("\n")[1:][-tail:] if tail else []
    return Folded(_clean(first), total - len(first) - len(last), _clean(last))


def fold_lines(lines: list[str], head: int, tail: int) -> Folded:
    """Fold lines. One hidden line would take as much space as its count, so it is shown."""
    if len(lines) <= head + tail + 1:
        return Folded(_clean(lines), 0, [])
    return Folded(_clean(lines[:head]), len(lines) - head - tail, _clean(lines[len(lines) - tail :]))


def _clean(lines: Iterable[str]) -> list[str]:
    return [clean_line(line) for line in lines]
