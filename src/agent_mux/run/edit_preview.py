"""The diff of the edits for which an agent asks permission, against the files on disk where they can be read.

The files are those of the working directory. Links out of it, special files, binary files and large files are not read:
then the diff consists of the texts that the agent reports, with line numbers that count from the start of each. If such
a file is in the working directory and would be replaced as a whole, a line before the diff states that it has content.
"""

import json
import os
import threading
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePath
from typing import Any, NamedTuple

from agent_mux._util.opening import open_regular_file
from agent_mux.sdk import unified_diff
from agent_mux.sdk.facts import FileEdit

MAX_FILE_SIZE = 1 << 20
"""Bytes of a file that is read."""
MAX_FILES = 20
"""Files that are read for one request."""
READ_TIMEOUT = 0.5
"""Seconds for reading the files of one request: a network file system may not respond at all."""


class NotShown(NamedTuple):
    """A file that exists and whose content cannot be compared."""

    reason: str


Texts = Mapping[str, str | NotShown | None]
"""The content of files by the path in the request; None: there is no such file. Files that are missing are unknown."""


def diff_of_edits(edits: Sequence[FileEdit], cwd: str, texts: Texts) -> str:
    """Return the unified diff of these edits; paths inside `cwd` become relative to it."""
    by_path: dict[str, list[FileEdit]] = {}
    for edit in edits:
        by_path.setdefault(edit.path, []).append(edit)
    return "".join(_diff_of_file(path, found, cwd, texts) for path, found in by_path.items())


def _diff_of_file(path: str, edits: Sequence[FileEdit], cwd: str, texts: Texts) -> str:
    name, before = _name_in(cwd, path), texts.get(path)
    if isinstance(before, NotShown):
        note = f"# {name} has content that is not shown: {before.reason}\n" if edits[0].old is None else ""
        return note + unified_diff.from_replacements(name, [_whole_lines(edit) for edit in edits])
    if path in texts:
        if any(edit.cell is not None for edit in edits):
            return "".join(_diff_of_cell(name, edit, before) for edit in edits)
        if before is not None and "\r\n" in before and not any("\r" in (edit.old or "") for edit in edits):
            before = before.replace("\r\n", "\n")  # agents show models the lines without their ends
        after = _apply(before, edits)
        if after is not None:
            return unified_diff.from_files(name, before, after)
    return unified_diff.from_replacements(name, [_whole_lines(edit) for edit in edits])


def _whole_lines(edit: FileEdit) -> tuple[str, str]:
    """Return both texts with a newline at the end: parts of a file show nothing about its end."""
    old, new = (f"{text}\n" if text and not text.endswith("\n") else text for text in (edit.old or "", edit.new))
    return (old, new) if edit.old is not None and old != new else (edit.old or "", edit.new)


def _apply(text: str | None, edits: Iterable[FileEdit]) -> str | None:
    """Return the text after the edits; None if one does not fit, so that its effect is unknown."""
    for edit in edits:
        if edit.old is None or (not edit.old and not text):
            text = edit.new
        elif not edit.old or text is None or edit.old not in text:
            return None
        else:
            text = text.replace(edit.old, edit.new, -1 if edit.replaces_all else 1)
    return text


def _diff_of_cell(name: str, edit: FileEdit, notebook: str | None) -> str:
    old = edit.old if edit.old is not None else _source_of_cell(notebook or "", edit.cell)
    return unified_diff.from_texts(f"{name}#{edit.cell}", old, edit.new)


def _source_of_cell(notebook: str, cell_id: str | None) -> str:
    try:
        cells: Any = json.loads(notebook)["cells"]
        cell = next(cell for number, cell in enumerate(cells) if cell_id in (cell.get("id"), f"cell-{number}"))
        return "".join(cell["source"])
    except (ValueError, KeyError, TypeError, AttributeError, StopIteration, RecursionError):  # not such a notebook
        return ""


def _name_in(cwd: str, path: str) -> str:
    pure = PurePath(path)
    return str(pure.relative_to(cwd)) if cwd and pure.is_relative_to(cwd) else path


# -- reading files


def read_files(paths: Iterable[str], cwd: str) -> Texts:
    """Return the texts of files inside `cwd`. A file that is outside, or that cannot be read in time, is missing."""
    texts: dict[str, str | NotShown | None] = {}
    wanted = list(dict.fromkeys(paths))[:MAX_FILES]

    def read() -> None:
        for path in wanted:
            try:
                texts[path] = _read_file(path, cwd)
            except (OSError, ValueError):  # unreadable, or outside
                continue

    thread = threading.Thread(target=read, name="edit-preview", daemon=True)
    thread.start()
    thread.join(READ_TIMEOUT)
    return dict(texts)


def _read_file(path: str, cwd: str) -> str | NotShown | None:
    """Return the content of a regular file; None if there is none. Links inside `cwd` are resolved first."""
    root = PurePath(os.path.realpath(cwd))
    inside = PurePath(os.path.realpath(root / path)).relative_to(root)
    try:
        with open_regular_file(root, inside) as (descriptor, size), open(descriptor, "rb", closefd=False) as file:
            data = file.read(MAX_FILE_SIZE + 1) if size <= MAX_FILE_SIZE else b""
    except FileNotFoundError:
        return None
    except PermissionError as error:
        return NotShown(str(error.strerror))
    size = max(size, len(data))
    if size > MAX_FILE_SIZE:
        return NotShown(f"{size:,} bytes")
    try:
        return data.decode("utf-8") if b"\0" not in data else NotShown(f"binary, {size:,} bytes")
    except UnicodeDecodeError:
        return NotShown(f"not UTF-8, {size:,} bytes")
