"""The effects of finished tool calls on files, and their diffs."""

from collections.abc import Callable, Mapping
from pathlib import PurePosixPath
from typing import Any

from agent_mux.sdk.facts import FileDeleted, FileEffect, FilePatched, FileRead, FileWritten
from agent_mux_adapters._dialects.tolerant import mapping, rows, text

Fields = Mapping[str, Any]


def effects_of(tool: str, arguments: Fields, metadata: Fields, cwd: str) -> tuple[FileEffect, ...]:
    """Return the effects of a successful call. `arguments`: its input."""
    reader = _READERS.get(tool)
    return () if reader is None else tuple(reader(arguments, metadata, cwd))


def _read(arguments: Fields, metadata: Fields, _: str) -> list[FileEffect]:
    path = text(arguments.get("filePath"))
    is_folder = mapping(metadata.get("display")).get("type") == "directory"
    return [FileRead(path)] if path and not is_folder else []


def _write(arguments: Fields, metadata: Fields, _: str) -> list[FileEffect]:
    path = text(metadata.get("filepath")) or text(arguments.get("filePath"))
    return [FileWritten(path, _size(text(arguments.get("content"))), created=metadata.get("exists") is False)]


def _edit(arguments: Fields, metadata: Fields, cwd: str) -> list[FileEffect]:
    path = text(mapping(metadata.get("filediff")).get("file")) or text(arguments.get("filePath"))
    new = text(arguments.get("newString"))
    if arguments.get("oldString") == "":  # OpenCode accepts an empty old text only for a new file
        return [FileWritten(path, _size(new), created=True)]
    known_lines = [*text(arguments.get("oldString")).split("\n")[1:], *new.split("\n")[1:]]
    diff = _diff(text(metadata.get("diff")), path, path, cwd, known_lines)
    return [FilePatched(path, diff)] if diff else []


def _apply_patch(_: Fields, metadata: Fields, cwd: str) -> list[FileEffect]:
    return [effect for change in rows(metadata.get("files")) for effect in _patch_effects(change, cwd)]


def _patch_effects(change: Fields, cwd: str) -> list[FileEffect]:
    path, moved, patch = (text(change.get(key)) for key in ("filePath", "movePath", "patch"))
    if not path:
        return []
    match change.get("type"):
        case "add":
            return [FileWritten(path, _added(patch), created=True)]
        case "delete":
            return [FileDeleted(path)]
        case "move" if moved:
            diff = _diff(patch, path, moved, cwd, [])
            return [FileDeleted(path), FilePatched(moved, diff)] if diff else [FileDeleted(path)]
    diff = _diff(patch, path, path, cwd, [])
    return [FilePatched(path, diff)] if diff else []


_READERS: dict[str, Callable[[Fields, Fields, str], list[FileEffect]]] = {
    "apply_patch": _apply_patch,
    "edit": _edit,
    "patch": _apply_patch,
    "read": _read,
    "write": _write,
}


# -- diffs


def shown_diff(diff: str, cwd: str) -> str:
    """Return the diff of an approval without OpenCode's own header."""
    head, _, _ = diff.partition("\n@@")
    path = next((line[4:].strip() for line in head.split("\n") if line.startswith("+++ ")), "")
    return _diff(diff, path, path, cwd, []) or diff


def _diff(native: str, old: str, new: str, cwd: str, known_lines: list[str]) -> str:
    """Return a unified diff with a header that can be applied. `known_lines`: whole lines of the file, old or new."""
    start = native.find("@@")
    if start < 0:
        return ""
    hunks = native[start:].rstrip("\n").split("\n")
    indent = _indent_of(hunks, known_lines)
    lines = [
        line[0] + indent + line[1:] if indent and line[1:].strip() and line[0] in " +-" else line for line in hunks
    ]
    return f"--- a/{_display_path(old, cwd)}\n+++ b/{_display_path(new, cwd)}\n" + "\n".join(lines) + "\n"


def _indent_of(hunks: list[str], known_lines: list[str]) -> str:
    """Return the common indentation that OpenCode removed from the diff; empty if it cannot be determined."""
    whole_lines = {line.strip(): line for line in known_lines if line.strip()}
    for line in hunks:
        shown = line[1:]
        whole = whole_lines.get(shown.strip()) if line[:1] in {"+", "-"} else None
        if whole is not None and whole.endswith(shown):
            return whole[: len(whole) - len(shown)]
    return ""


def _display_path(path: str, cwd: str) -> str:
    pure = PurePosixPath(path)
    return str(pure.relative_to(cwd)) if cwd and pure.is_relative_to(cwd) else path.lstrip("/")


def _size(content: str) -> int:
    return len(content.encode("utf-8", "replace"))


def _added(patch: str) -> int:
    """Return the size in bytes of a new file, from the diff that adds it."""
    lines = patch[patch.find("@@") :].split("\n") if "@@" in patch else []
    ends_open = any(line.startswith("\\ No newline") for line in lines)
    added = [line[1:] for line in lines if line.startswith("+")]
    return _size("\n".join(added)) + (1 if added and not ends_open else 0)
