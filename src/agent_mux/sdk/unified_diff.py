"""Unified diffs of edits, built from two texts or from the agent's own hunks."""

import re
from collections.abc import Iterable, Iterator
from pathlib import PurePath
from typing import NamedTuple

from agent_mux.sdk.facts import FileEffect, FilePatched

CONTEXT_LINES = 3
NO_NEWLINE = "\\ No newline at end of file"
_POSITION = r"@@ -\d{1,9}(?:,(\d{1,9}))? \+\d{1,9}(?:,(\d{1,9}))? @@"
MAX_COMPARED_LINES = 400
"""Above this, the changed part of a file is one hunk: the time to find the unchanged lines in it is quadratic."""
NO_FILE = "/dev/null"
"""The name of the old side of a new file, and of the new side of a deleted one."""


def with_header(path: str, lines: list[str]) -> str:
    """Return the diff of these lines, which are hunks with their `@@` lines; empty without lines."""
    if not lines:
        return ""
    return _header(path.lstrip("/")) + "\n".join(lines) + "\n"


def from_texts(path: str, old: str, new: str) -> str:
    """Return the diff between two whole texts as one hunk, in linear time; empty when they are equal."""
    return with_header(path, list(_hunk_between(old, new)))


def from_files(path: str, old: str | None, new: str | None) -> str:
    """Return the diff between two whole files, with a hunk for each change; None is a file that does not exist."""
    name = path.lstrip("/")
    sides = (NO_FILE if old is None else f"a/{name}", NO_FILE if new is None else f"b/{name}")
    if old == new:
        return ""
    return "".join(f"{line}\n" for line in (f"--- {sides[0]}", f"+++ {sides[1]}", *_hunks(old or "", new or "")))


def from_replacements(path: str, pairs: Iterable[tuple[str, str]]) -> str:
    """Return the diff of replacements at unknown places: line numbers count from the start of each fragment."""
    return with_header(path, [line for old, new in pairs for line in _hunk_between(old, new)])


class FileHunks(NamedTuple):
    """The part of a unified diff about one file."""

    old_name: str
    new_name: str
    """The names with their prefixes `a/` and `b/`, or `NO_FILE`."""
    lines: list[str]
    """The hunks, with their `@@` lines."""


def split_files(diff: str) -> Iterator[FileHunks]:
    """Yield the parts of a unified diff. The line counts of the hunks separate headers from changed lines."""
    file: FileHunks | None = None
    old_left = new_left = 0
    lines = iter(diff.split("\n"))
    for line in lines:
        position = None if old_left > 0 or new_left > 0 else re.match(_POSITION, line)
        if position is not None and file is not None:
            old_left, new_left = (1 if count is None else int(count) for count in position.groups())
            file.lines.append(line)
        elif (old_left > 0 or new_left > 0) and file is not None and line[:1] in {" ", "-", "+", "\\"}:
            old_left -= line[:1] in {" ", "-"}
            new_left -= line[:1] in {" ", "+"}
            file.lines.append(line)
        elif line.startswith("--- "):
            if file is not None:
                yield file
            file, old_left, new_left = FileHunks(line[4:], next(lines, "")[4:], []), 0, 0
        elif file is not None and line.startswith("\\"):
            file.lines.append(line)
    if file is not None:
        yield file


def count_lines(diff: str) -> tuple[int, int]:
    """Return the numbers of lines that a unified diff adds and removes."""
    lines = [line for file in split_files(diff) for line in file.lines]
    return sum(line.startswith("+") for line in lines), sum(line.startswith("-") for line in lines)


def relative_to(directory: str, effect: FileEffect) -> FileEffect:
    """Return a patch of a file inside `directory` with a relative path in its header.

    Other effects are returned unchanged.
    """
    if not isinstance(effect, FilePatched) or not directory or not PurePath(effect.path).is_relative_to(directory):
        return effect
    _, _, hunks = effect.diff.split("\n", 2)
    return FilePatched(effect.path, _header(str(PurePath(effect.path).relative_to(directory))) + hunks)


def _header(name: str) -> str:
    return f"--- a/{name}\n+++ b/{name}\n"


def _hunk_between(old: str, new: str) -> Iterator[str]:
    if old == new:
        return
    before, after = _lines(old), _lines(new)
    same_head = _common(before, after)
    same_tail = _common(before[same_head:][::-1], after[same_head:][::-1])
    first = max(same_head - CONTEXT_LINES, 0)
    kept = min(same_tail, CONTEXT_LINES)
    old_end, new_end = len(before) - same_tail, len(after) - same_tail
    old_count, new_count = old_end + kept - first, new_end + kept - first
    yield f"@@ -{first + (old_count > 0)},{old_count} +{first + (new_count > 0)},{new_count} @@"
    yield from _marked(" ", before[first:same_head])
    yield from _marked("-", before[same_head:old_end])
    yield from _marked("+", after[same_head:new_end])
    yield from _marked(" ", before[old_end : old_end + kept])


def _hunks(old: str, new: str) -> Iterator[str]:
    """Yield the hunks between two texts; one for everything if the changed part is long."""
    before, after = _lines(old), _lines(new)
    same_head = _common(before, after)
    same_tail = _common(before[same_head:][::-1], after[same_head:][::-1])
    first = max(same_head - CONTEXT_LINES, 0)
    cut = max(same_tail - CONTEXT_LINES, 0)
    before, after = before[first : len(before) - cut], after[first : len(after) - cut]
    if max(len(before), len(after)) > MAX_COMPARED_LINES:
        yield from _hunk_between(old, new)
        return
    from difflib import SequenceMatcher  # noqa: PLC0415  # needed for edits only

    for group in SequenceMatcher(None, before, after, autojunk=False).get_grouped_opcodes(CONTEXT_LINES):
        (_, old_start, _, new_start, _), (_, _, old_end, _, new_end) = group[0], group[-1]
        yield f"@@ -{_span(first, old_start, old_end)} +{_span(first, new_start, new_end)} @@"
        for tag, i1, i2, j1, j2 in group:
            yield from _marked(" " if tag == "equal" else "-", before[i1:i2])
            yield from _marked("+", after[j1:j2] if tag != "equal" else [])


def _span(offset: int, start: int, end: int) -> str:
    return f"{offset + start + (end > start)},{end - start}"


def _lines(content: str) -> list[str]:
    # Not splitlines(): it also splits at characters that do not end a line for other programs.
    *complete, rest = content.split("\n")
    return [f"{line}\n" for line in complete] + ([rest] if rest else [])


def _common(left: list[str], right: list[str]) -> int:
    count = 0
    for ours, theirs in zip(left, right, strict=False):
        if ours != theirs:
            break
        count += 1
    return count


def _marked(mark: str, lines: list[str]) -> Iterator[str]:
    for line in lines:
        yield mark + line.removesuffix("\n")
        if not line.endswith("\n"):
            yield NO_NEWLINE
