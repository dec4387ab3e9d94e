r"""Unified diffs of what the file tools did, from what Copilot shows of it.

It compares `text.split("\n")`: a text that ends with a newline has an empty last line there, which no diff has, and one
that does not is not marked. Only hunks that reach the end of the file are wrong in that way. They are the ones with
fewer than three lines of context at their end; they hold the whole rest of both texts, and are made anew from it.
"""

import re
from collections.abc import Iterator

import msgspec

from agent_mux_adapters._dialects import unified_diff

CONTEXT = 3
_FILE = re.compile(r"(?:^|\n)diff --git ")
_NAME = re.compile(r"\n\+\+\+ b/([^\n]*)\n|\n--- a/([^\n]*)\n\+\+\+ b/dev/null\n")
_MADE = "\n--- a/dev/null\n"
_NEXT_HUNK = re.compile(r"\n(?=@@ )")
_HUNK = re.compile(r"^@@ -(\d{1,9}),(\d{1,9}) \+(\d{1,9}),(\d{1,9}) @@$")


class Section(msgspec.Struct, frozen=True):
    """The diff of one file."""

    path: str
    """Absolute."""
    hunks: list[str]
    """Lines, headers included."""
    made: bool
    """The file was not there before, under any name."""
    added: str
    """The text of the added lines: of a file that was made, all of it."""


def sections(shown: str) -> Iterator[Section]:
    """The files of a diff as Copilot shows it."""
    for part in _FILE.split(shown)[1:]:
        name = _NAME.search(part)
        if name is not None:
            # The lines of files have a sign before them: nothing in them looks like a header.
            hunks = [hunk.split("\n") for hunk in _NEXT_HUNK.split(part.rstrip("\n"))[1:]]
            added = [line[1:] for hunk in hunks for line in hunk[1:] if line.startswith("+")]
            lines = [line for hunk in hunks for line in _mended(hunk)]
            yield Section(f"/{name[1] or name[2]}", lines, _MADE in part[: name.end()], "\n".join(added))


def of_file(shown: str, path: str) -> str:
    """The unified diff of this file; empty when none is shown."""
    found = next((section for section in sections(shown) if section.path == path), None)
    return "" if found is None else unified_diff.with_header(path, found.hunks)


def _mended(hunk: list[str]) -> list[str]:
    match = _HUNK.match(hunk[0])
    lines = hunk[1:]
    if match is None or not lines:
        return hunk
    trailing = next((count for count, line in enumerate(reversed(lines)) if not line.startswith(" ")), len(lines))
    if trailing < CONTEXT:
        return _to_the_end(int(match[1]), int(match[3]), lines)
    if lines[-1] != " ":
        return hunk
    # Either a line of the file, or the empty one after its end: without it the diff is right in both cases.
    header = f"@@ -{match[1]},{int(match[2]) - 1} +{match[3]},{int(match[4]) - 1} @@"
    return [header, *lines[:-1]]


def _to_the_end(old_start: int, new_start: int, lines: list[str]) -> list[str]:
    old = "\n".join(line[1:] for line in lines if not line.startswith("+"))
    new = "\n".join(line[1:] for line in lines if not line.startswith("-"))
    made = unified_diff.from_texts("x", old, new).split("\n")[2:-1]
    return [_shifted(made[0], old_start - 1, new_start - 1), *made[1:]] if made else []


def _shifted(header: str, old: int, new: int) -> str:
    match = _HUNK.match(header)
    if match is None:
        return header
    return f"@@ -{int(match[1]) + old},{match[2]} +{int(match[3]) + new},{match[4]} @@"
