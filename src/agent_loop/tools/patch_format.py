"""Parse patches: the envelope `*** Begin Patch`, which models of OpenAI are trained on, and unified diffs as of git.

The result of both is the same list of changes to files. Nothing is read or written.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Literal

import msgspec

from agent_loop.errors import ToolError

ChangeKind = Literal["add", "delete", "update"]
_BEGIN, _END = "*** Begin Patch", "*** End Patch"
_MOVE, _END_OF_FILE = "*** Move to: ", "*** End of File"
_SECTIONS: dict[str, ChangeKind] = {
    "*** Add File: ": "add",
    "*** Delete File: ": "delete",
    "*** Update File: ": "update",
}
_RANGE = re.compile(r"@@ -(\d{1,9})(?:,\d{1,9})? \+\d{1,9}(?:,\d{1,9})? @@.*")
_NO_FINAL_NEWLINE = "\\ No newline"
_NO_FILE = "/dev/null"
_SHOWN = 120
"""The most characters of a line that an error shows."""


class Hunk(msgspec.Struct, frozen=True):
    """A run of lines to replace."""

    old: tuple[str, ...]
    """The lines in the file: context and removed lines."""
    new: tuple[str, ...]
    """The lines after the change: context and added lines."""
    anchors: tuple[str, ...] = ()
    """Lines above the hunk, from the outermost (`@@ class A`) to the nearest (`@@ def f`)."""
    line: int | None = None
    """The number of the first line, from 1, as a unified diff states it."""
    at_end: bool = False
    """Whether the hunk is at the end of the file."""
    final_newline: bool | None = None
    """Whether the file ends with a newline afterwards; None: as before."""


class FileChange(msgspec.Struct, frozen=True):
    """The change of one file."""

    kind: ChangeKind
    path: str
    target: str | None = None
    """The new path of a file that is moved."""
    hunks: tuple[Hunk, ...] = ()
    content: str = ""
    """The content of a new file."""


def parse_patch(text: str) -> list[FileChange]:
    """Parse a patch in either format. Raises `ToolError` for any other text, with the line that is wrong."""
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    begin = next((at for at, line in enumerate(lines) if line.strip() == _BEGIN), None)
    if begin is not None:
        end = next((at for at in range(begin, len(lines)) if lines[at].strip() == _END), None)
        if end is None:
            raise ToolError(f"the patch has no line {_END!r}; it may be cut, so nothing was changed")
        changes = list(_envelope(lines[begin + 1 : end]))
    else:
        changes = list(_unified(lines))
    if not changes:
        raise ToolError(
            f"the patch changes no file; begin with {_BEGIN!r} and '*** Update File: path', or '--- a/path'"
        )
    return changes


# -- the envelope


def _envelope(lines: Sequence[str]) -> Iterator[FileChange]:
    starts = [at for at, line in enumerate(lines) if line.startswith(tuple(_SECTIONS))]
    before = next((line for line in lines[: starts[0] if starts else len(lines)] if line.strip()), None)
    if before is not None:
        raise ToolError(f"{before[:_SHOWN]!r} is not the start of a file; use '*** Update File: path' or Add or Delete")
    for start, end in pairwise([*starts, len(lines)]):
        header = next(each for each in _SECTIONS if lines[start].startswith(each))
        path, body = lines[start].removeprefix(header).strip(), list(lines[start + 1 : end])
        yield _section(_SECTIONS[header], path, body)


def _section(kind: ChangeKind, path: str, body: list[str]) -> FileChange:
    if not path:
        raise ToolError("a file of the patch has no path")
    if kind == "update":
        target = body.pop(0).removeprefix(_MOVE).strip() if body and body[0].startswith(_MOVE) else None
        return FileChange(kind, path, target, tuple(_hunks(body, path)))
    body = _without_blank_end(body)
    if kind == "delete":
        if body:
            raise ToolError(f"{path} is deleted, but lines follow: {body[0][:_SHOWN]!r}")
        return FileChange(kind, path)
    wrong = next((line for line in body if not line.startswith("+")), None)
    if wrong is not None:
        raise ToolError(f"each line of the new file {path} must begin with '+', but there is {wrong[:_SHOWN]!r}")
    return FileChange(kind, path, content="".join(f"{line[1:]}\n" for line in body))


def _hunks(lines: Sequence[str], path: str) -> Iterator[Hunk]:
    anchors: list[str] = []
    line: int | None = None
    body: list[str] = []
    for each in [*lines, "@@"]:
        if not each.startswith("@@"):
            body.append(each)
            continue
        if body and (found := _hunk(body, anchors, line, path)):
            yield found
            anchors = []
        body = []
        match = _RANGE.fullmatch(each)
        line = int(match[1]) if match else None
        anchor = "" if match else each.removeprefix("@@").strip().removesuffix("@@").strip()
        anchors += [anchor] if anchor else []


def _hunk(body: Sequence[str], anchors: Sequence[str], line: int | None, path: str) -> Hunk | None:
    """Return the hunk of these lines, None if they are blank."""
    at_end = any(each.strip() == _END_OF_FILE for each in body)
    old: list[str] = []
    new: list[str] = []
    final_newline = None
    last = ""
    for each in _without_blank_end([each for each in body if each.strip() != _END_OF_FILE]):
        if each.startswith(_NO_FINAL_NEWLINE):
            final_newline = last == "-"
            continue
        last = each[:1] or " "
        if last not in " +-":
            raise ToolError(f"a line of {path} must begin with ' ', '+' or '-', but there is {each[:_SHOWN]!r}")
        if last in " -":
            old.append(each[1:])
        if last in " +":
            new.append(each[1:])
    if not old and not new:
        return None
    return Hunk(tuple(old), tuple(new), tuple(anchors), line, at_end, final_newline)


def _without_blank_end(lines: Sequence[str]) -> list[str]:
    """Return the lines without empty ones at the end, which separate sections."""
    end = len(lines)
    while end and not lines[end - 1]:
        end -= 1
    return list(lines[:end])


# -- unified diffs


def _unified(lines: Sequence[str]) -> Iterator[FileChange]:
    starts = [at for at in range(len(lines)) if _starts_file(lines, at)]
    for start, end in pairwise([*starts, len(lines)]):
        yield _file_diff(lines[start:end])


def _starts_file(lines: Sequence[str], at: int) -> bool:
    """Whether a file begins here: at a line of git, or at `---` and `+++` that no line of git precedes."""
    if lines[at].startswith("diff --git "):
        return True
    if not _is_header(lines, at):
        return False
    before = at
    while before and not lines[before - 1].startswith(("diff --git ", "@@", "+", "-", " ")) and lines[before - 1]:
        before -= 1
    return not (before and lines[before - 1].startswith("diff --git "))


def _is_header(lines: Sequence[str], at: int) -> bool:
    return lines[at].startswith("--- ") and at + 1 < len(lines) and lines[at + 1].startswith("+++ ")


def _file_diff(lines: Sequence[str]) -> FileChange:
    header = next((at for at in range(len(lines)) if _is_header(lines, at)), None)
    if header is None:
        return _change_without_lines(lines)
    old, new = (_path_of(line) for line in lines[header : header + 2])
    if old.startswith("a/") and new.startswith("b/"):
        old, new = old[2:], new[2:]
    elif _NO_FILE in {old, new}:
        old, new = (path.removeprefix(prefix) for path, prefix in ((old, "a/"), (new, "b/")))
    hunks = tuple(_hunks(lines[header + 2 :], new))
    if old == _NO_FILE:
        added = [line for hunk in hunks for line in hunk.new]
        ending = "" if any(hunk.final_newline is False for hunk in hunks) else "\n"
        return FileChange("add", new, content="\n".join(added) + (ending if added else ""))
    if new == _NO_FILE:
        return FileChange("delete", old)
    return FileChange("update", old, None if new == old else new, hunks)


def _change_without_lines(lines: Sequence[str]) -> FileChange:
    """Return the change of a git header without hunks: a file that is moved, or an empty one."""
    fields = {
        name: line.removeprefix(f"{name} ")
        for line in lines
        for name in ("rename from", "rename to", "new file mode", "deleted file mode")
        if line.startswith(f"{name} ")
    }
    path = lines[0].rpartition(" b/")[2]
    if "rename from" in fields and "rename to" in fields:
        return FileChange("update", fields["rename from"], fields["rename to"])
    if "new file mode" in fields:
        return FileChange("add", path)
    if "deleted file mode" in fields:
        return FileChange("delete", path)
    raise ToolError(f"{lines[0][:_SHOWN]!r} has no lines to change; binary files and modes cannot be patched")


def _path_of(line: str) -> str:
    return line[4:].split("\t", maxsplit=1)[0].strip()
