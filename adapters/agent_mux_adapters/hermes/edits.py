"""What a file tool did on disk, from its arguments, its result and the diff that Hermes shows.

Hermes' diffs are Python's: a line that does not end in a newline runs into the next one, and lines are counted as
`str.splitlines` counts them. Such a diff is not a diff any more; then the replacement itself is told.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from agent_mux.facts import FileDeleted, FileEffect, FilePatched, FileRead, FileWritten
from agent_mux_adapters._dialects.tolerant import mapping, text
from agent_mux_adapters._dialects.unified_diff import NO_NEWLINE, from_replacements, relative_to, with_header

_HUNK = re.compile(r"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@")
_FROM_NOTHING = re.compile(r"@@ -0,0 \+")
_SECTION = re.compile(r"^--- (?:a/(.+)|/dev/null)\n\+\+\+ (?:b/(.+)|/dev/null)\n", re.MULTILINE)
_MOVED = re.compile(r"^# Moved: (.+) -> .+$", re.MULTILINE)
_LONGEST_NUMBER = 9  # digits


class Edits:
    """The files of one run."""

    def __init__(self, cwd: str) -> None:
        self._cwd = cwd
        self._seen: set[str] = set()

    def of(self, name: str, arguments: Mapping[str, Any], payload: Mapping[str, Any]) -> tuple[FileEffect, ...]:
        """The effects of a call that succeeded; none when it is no file tool."""
        reader = _READERS.get(name)
        found = tuple(reader(self, arguments, payload)) if reader is not None else ()
        self._seen.update(effect.path for effect in found)
        return tuple(relative_to(self._cwd, effect) for effect in found)

    def read(self, arguments: Mapping[str, Any], _: Mapping[str, Any]) -> Iterator[FileEffect]:
        """`read_file`."""
        if text(arguments.get("path")):
            yield FileRead(text(arguments["path"]))

    def written(self, arguments: Mapping[str, Any], payload: Mapping[str, Any]) -> Iterator[FileEffect]:
        """`write_file`. That the file is new shows in the diff only."""
        path = _place(arguments, payload)
        content = text(arguments.get("content"))
        shown = text(payload.get("inline_diff"))
        from_nothing = _FROM_NOTHING.search(shown) is not None or not (shown or content)
        if path:
            created = from_nothing and path not in self._seen
            yield FileWritten(path, len(content.encode("utf-8", "replace")), created)

    def patched(self, arguments: Mapping[str, Any], payload: Mapping[str, Any]) -> Iterator[FileEffect]:
        """`patch`: one replacement, or a patch of several files."""
        diff = text(mapping(payload.get("result")).get("diff"))
        if arguments.get("mode") == "patch":
            yield from _sections(diff)
            yield from (FileDeleted(found[1]) for found in _MOVED.finditer(diff))
            return
        path = _place(arguments, payload)
        pair = text(arguments.get("old_string")), text(arguments.get("new_string"))
        whole = _diff_of(path, _SECTION.sub("", diff, count=1)) or from_replacements(path, [pair])
        if path and whole:
            yield FilePatched(path, whole)


def _place(arguments: Mapping[str, Any], payload: Mapping[str, Any]) -> str:
    return text(mapping(payload.get("result")).get("resolved_path")) or text(arguments.get("path"))


def _sections(diff: str) -> Iterator[FileEffect]:
    heads = [*_SECTION.finditer(diff)]
    ends = [*(head.start() for head in heads[1:]), len(diff)]
    for head, end in zip(heads, ends, strict=True):
        body = _MOVED.sub("", diff[head.end() : end])
        before, after = head[1], head[2]
        if before is None and after is not None:
            added = "\n".join(line[1:] for line in body.split("\n") if line.startswith("+"))
            yield FileWritten(after, len(added.encode("utf-8", "replace")), created=True)
        elif after is None and before is not None:
            yield FileDeleted(before)
        elif after is not None and (whole := _diff_of(after, body)):
            yield FilePatched(after, whole)


def _diff_of(path: str, hunks: str) -> str:
    """A diff of these hunks; empty when they are none, or do not hold what they announce."""
    lines = hunks.rstrip("\n").split("\n")
    taken: list[str] = []
    old = new = 0
    for line in lines:
        head = _HUNK.match(line)
        if head is not None and not (old or new):
            old, new = _count(head[1]), _count(head[2])
        elif not (old or new) and not line:
            continue  # between two files
        else:
            old, new = old - (line[:1] in " -"), new - (line[:1] in " +")
            if old < 0 or new < 0 or line[:1] not in (" ", "-", "+"):
                return ""
        taken.append(line)
    if old or new:
        return ""
    return with_header(path, [*taken, *([] if hunks.endswith("\n") else [NO_NEWLINE])]) if hunks.strip() else ""


def _count(said: str | None) -> int:
    return 1 if said is None else int(said[:_LONGEST_NUMBER])


_Reader = Callable[[Edits, Mapping[str, Any], Mapping[str, Any]], Iterator[FileEffect]]
_READERS: Mapping[str, _Reader] = {"read_file": Edits.read, "write_file": Edits.written, "patch": Edits.patched}
