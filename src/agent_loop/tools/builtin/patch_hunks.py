"""Apply the hunks of a patch to a text. Each must match one place, with the tolerance of `edit`."""

from collections.abc import Sequence
from typing import NamedTuple

from agent_loop.errors import ToolError
from agent_loop.tools.builtin.near_matches import line_matches, plain
from agent_loop.tools.builtin.replacements import SHOWN_PLACES, preview_of
from agent_loop.tools.patch_format import Hunk


class PatchedText(NamedTuple):
    """A text after all hunks."""

    text: str
    differences: tuple[str, ...]
    """How lines of the patch differed from the file, without exact matches."""


class _Place(NamedTuple):
    start: int
    end: int
    text: str
    difference: str = ""


def apply_hunks(text: str, hunks: Sequence[Hunk]) -> PatchedText:
    """Apply the hunks in their order, each to the result of those before. Raises `ToolError` for one that does not fit.

    A hunk without anchors must match exactly one place of the file. With anchors, the first place behind them counts,
    and each anchor must be one line of the file. The line number of a unified diff decides between several places.
    """
    differences: list[str] = []
    shift = 0
    for number, hunk in enumerate(hunks, 1):
        try:
            place = _find(text, hunk, shift)
        except ToolError as error:
            raise ToolError(f"hunk {number} of {len(hunks)}: {error}") from error
        is_last = place.end >= len(text)
        text = text[: place.start] + place.text + text[place.end :]
        if is_last and hunk.final_newline is not None:
            text = text.removesuffix("\n") + ("\n" if hunk.final_newline else "")
        shift += len(hunk.new) - len(hunk.old)
        differences += [place.difference] if place.difference else []
    return PatchedText(text, tuple(dict.fromkeys(differences)))


def _find(text: str, hunk: Hunk, shift: int) -> _Place:
    """Return the place of a hunk. `shift` is the number of lines that the hunks before it added."""
    start = _end_of_anchors(text, hunk.anchors)
    new = "".join(f"{line}\n" for line in hunk.new)
    if not hunk.old:
        return _insertion(text, hunk, start, new, shift)
    old = "".join(f"{line}\n" for line in hunk.old)
    found = line_matches(text[start:], old, new)
    if found is None:
        raise ToolError(f"its lines were not found{preview_of(text, old)}")
    places = [_Place(start + each[0], start + each[1], each[2], found.difference) for each in found.places]
    if hunk.at_end:
        places = [place for place in places if place.end >= len(text)]
        if not places:
            raise ToolError("its lines are not at the end of the file")
    if len(places) > 1 and not hunk.anchors:
        return _numbered(text, places, hunk, shift)
    return places[0]


def _numbered(text: str, places: Sequence[_Place], hunk: Hunk, shift: int) -> _Place:
    """Return the place at the line number of the hunk. Raises `ToolError` if no place is there."""
    numbers = [text.count("\n", 0, place.start) + 1 for place in places]
    if hunk.line is not None and hunk.line + shift in numbers:
        return places[numbers.index(hunk.line + shift)]
    raise ToolError(
        f"its lines occur {len(places)} times (in lines {', '.join(map(str, numbers[:SHOWN_PLACES]))}); add lines of "
        "context until they are unique, or a line above them as '@@ line'"
    )


def _insertion(text: str, hunk: Hunk, start: int, new: str, shift: int) -> _Place:
    """Return the place of a hunk that only adds lines: behind its anchors, at its line number, or at the end."""
    if hunk.anchors and not hunk.at_end:
        at = start
    elif hunk.line is not None and not hunk.at_end:
        at = _offset_of_line(text, hunk.line + shift)
    else:
        at = len(text)
    missing = "\n" if at and text[at - 1] != "\n" else ""
    return _Place(at, at, missing + new)


def _offset_of_line(text: str, count: int) -> int:
    """Return the offset behind the first `count` lines."""
    at = 0
    for _ in range(max(count, 0)):
        at = text.find("\n", at) + 1
        if not at:
            return len(text)
    return at


def _end_of_anchors(text: str, anchors: Sequence[str]) -> int:
    """Return the offset behind the line of the last anchor. Raises `ToolError` for one that is not exactly one line."""
    at = 0
    for anchor in anchors:
        ends = [end for line, end in _lines_from(text, at) if plain(line).strip() == plain(anchor).strip()]
        if len(ends) != 1:
            count = f"occurs {len(ends)} times; put the line above it before it" if ends else "was not found"
            raise ToolError(f"the line '@@ {anchor}' {count}")
        at = ends[0]
    return at


def _lines_from(text: str, at: int) -> list[tuple[str, int]]:
    """Return each line from an offset on, with the offset behind it."""
    found = []
    while at < len(text):
        end = text.find("\n", at)
        behind = len(text) if end < 0 else end + 1
        found.append((text[at:behind], behind))
        at = behind
    return found
