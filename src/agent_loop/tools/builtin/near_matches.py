"""Places in a text that equal a string except for whitespace at line ends, indentation, or typographic characters.

Models copy text with such differences. A difference is accepted only if the exact string does not occur.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_PLAIN = str.maketrans({
    "\u2018": "'", "\u2019": "'", "\u201a": "'", "\u201b": "'",
    "\u201c": '"', "\u201d": '"', "\u201e": '"', "\u201f": '"',
    "\u2010": "-", "\u2011": "-", "\u2012": "-", "\u2013": "-", "\u2014": "-", "\u2212": "-",
    "\u00a0": " ", "\u2002": " ", "\u2003": " ", "\u2009": " ", "\u202f": " ", "\u3000": " ",
})  # fmt: skip
"""Typographic quotes, dashes and spaces -> ASCII, character by character, so that positions stay the same."""


@dataclass(frozen=True, slots=True)
class NearMatches:
    """The places of one kind of difference, with their replacements."""

    difference: str
    """The difference between the string and the text, for the model."""
    places: Sequence[tuple[int, int, str]]
    """Start, end and replacement of each place, in order."""

    def apply(self, text: str) -> str:
        """Return the text with all places replaced."""
        parts, done = [], 0
        for start, end, replacement in self.places:
            parts += [text[done:start], replacement]
            done = end
        return "".join([*parts, text[done:]])


def near_matches(text: str, old: str, new: str) -> NearMatches | None:
    """Return the places that equal `old` with the smallest difference, None if there are none."""
    for difference, places in _attempts(text, old, new):
        if places:
            return NearMatches(difference, places)
    return None


def line_matches(text: str, old: str, new: str) -> NearMatches | None:
    """Return the places of whole lines that equal those of `old` exactly, else with the smallest difference."""
    same_indent = _matching_lines(text, old, new, keeps_indent=True)
    sought = old.removesuffix("\n")
    exact = [place for place in same_indent if text[place[0] : place[1]].removesuffix("\n") == sought]
    attempts = (
        ("", exact),
        ("whitespace at the end of lines", same_indent),
        ("indentation, quotes, dashes or spaces", _matching_lines(text, old, new, keeps_indent=False)),
    )
    return next((NearMatches(difference, places) for difference, places in attempts if places), None)


def plain(text: str) -> str:
    """Return the text with typographic quotes, dashes and spaces replaced by those of ASCII."""
    return text.translate(_PLAIN)


def _attempts(text: str, old: str, new: str) -> Iterator[tuple[str, list[tuple[int, int, str]]]]:
    yield "whitespace at the end of lines", _matching_lines(text, old, new, keeps_indent=True)
    yield "whitespace at the end of lines", _joined_places(text, old, new)
    yield "quotes, dashes or spaces", _plain_places(text, old, new)
    yield "indentation", _matching_lines(text, old, new, keeps_indent=False)


def _joined_places(text: str, old: str, new: str) -> list[tuple[int, int, str]]:
    """Return the places of several lines that begin or end within a line of the text."""
    lines = old.split("\n")
    if len(lines) == 1 or not (lines[0].strip() and lines[-1].strip()):
        return []
    parts = [*(line.rstrip(" \t") for line in lines[:-1]), lines[-1]]
    pattern = re.compile(r"[ \t]*\n".join(map(re.escape, parts)))
    return [(*match.span(), _with_known_lines(old, match[0], new)) for match in pattern.finditer(text)]


def _plain_places(text: str, old: str, new: str) -> list[tuple[int, int, str]]:
    plain_text, plain_old = text.translate(_PLAIN), old.translate(_PLAIN)
    places = []
    at = plain_text.find(plain_old)
    while at >= 0:
        end = at + len(old)
        places.append((at, end, _with_known_lines(old, text[at:end], new)))
        at = plain_text.find(plain_old, end)
    return places


def _with_known_lines(old: str, found: str, new: str) -> str:
    """Return the new text, with lines that do not change as they are in the file."""
    known = {line: other for line, other in zip(old.split("\n"), found.split("\n"), strict=False) if line.strip()}
    return "\n".join(known.get(line, line) for line in new.split("\n"))


def _matching_lines(text: str, old: str, new: str, *, keeps_indent: bool) -> list[tuple[int, int, str]]:
    """Return the runs of whole lines that equal those of `old` without whitespace at their ends."""
    sought, ends_line = _lines_of(old)
    if not any(line.strip() for line in sought):
        return []
    keys = [_key(line, keeps_indent=keeps_indent) for line in sought]
    lines = text.split("\n")
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)
    line_keys = [_key(line, keeps_indent=keeps_indent) for line in lines]
    places: list[tuple[int, int, str]] = []
    index = 0
    while index + len(sought) <= len(lines):
        window = slice(index, index + len(sought))
        replacement = None
        if line_keys[window] == keys:
            replacement = _new_lines(sought, lines[window], new, keeps_indent=keeps_indent)
        if replacement is None:
            index += 1
            continue
        end = starts[index + len(sought)] - 1
        has_ending = ends_line and end < len(text)
        if has_ending:
            end += 1
        elif new.endswith("\n") and ends_line:
            replacement = replacement.removesuffix("\n")
        places.append((starts[index], end, replacement))
        index += len(sought)
    return places


def _lines_of(text: str) -> tuple[list[str], bool]:
    """Return the lines of a string, and whether it ends with a line ending."""
    lines = text.split("\n")
    ends_line = len(lines) > 1 and lines[-1].strip() == ""
    return (lines[:-1] if ends_line else lines), ends_line


def _key(line: str, *, keeps_indent: bool) -> str:
    return line.rstrip() if keeps_indent else line.translate(_PLAIN).strip()


def _new_lines(sought: list[str], found: list[str], new: str, *, keeps_indent: bool) -> str | None:
    """Return the new text in the indentation of the file, None if the indentations do not correspond."""
    indents = _indents(sought, found)
    if indents is None:
        return None
    known = dict(zip(sought, found, strict=True))
    ending = "\r" if all(line.endswith("\r") for line in found) else ""
    lines = []
    for line in new.split("\n"):
        if line in known and line.strip():
            lines.append(known[line])
        elif not line.strip():
            lines.append(line)
        else:
            own = line if keeps_indent else _reindented(line, indents)
            lines.append(own if own.endswith("\r") else own + ending)
    return "\n".join(lines)


def _indents(sought: list[str], found: list[str]) -> dict[str, str] | None:
    """Return the indentation in the file for each one in the string, None if one has several."""
    indents: dict[str, str] = {}
    for one, other in zip(sought, found, strict=True):
        if one.strip() and indents.setdefault(_indent(one), _indent(other)) != _indent(other):
            return None
    return indents


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def _reindented(line: str, indents: dict[str, str]) -> str:
    """Return the line with the corresponding indentation: that of the longest known one that it begins with."""
    own = _indent(line)
    known = max((each for each in indents if own.startswith(each)), key=len, default=None)
    if known is not None:
        return indents[known] + line[len(known) :]
    # Less indented than all known lines: remove as much as the file has less.
    shortest = min(indents, key=len)
    missing = len(shortest) - len(own)
    return indents[shortest][: max(0, len(indents[shortest]) - missing)] + line[len(own) :]
