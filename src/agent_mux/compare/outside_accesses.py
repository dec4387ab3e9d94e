"""Find accesses of an agent to places that could show it a solution, in the inputs of its tools.

This reads text and cannot see what a program does: it is evidence, not a boundary. `isolation.py` is the boundary.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from agent_mux.compare.records import OutsideAccess

MAX_DETAIL = 300  # characters
_CONTENT_KEYS = frozenset(
    {"content", "contents", "file_text", "insert_text", "new_str", "new_string", "newText", "old_str", "old_string",
     "oldText", "patch", "text", "edits", "diff", "description", "prompt"}
)  # fmt: skip
"""Inputs that contain text of files, or text for a model, and not names of files."""
_COMMAND_KEYS = frozenset({"cmd", "command", "script", "code"})
_HERE_DOCUMENT = re.compile(r"<<-?\s*(['\"]?)(\w+)\1.*?^\s*\2\s*$", re.MULTILINE | re.DOTALL)
_WORDS = re.compile(r"[^\s'\"`;|&<>(){}=,]+|[;|&\n]")
_OBJECTS = re.compile(
    r"(?P<fsck>\bgit\b[^;|&\n]*\bfsck\b[^;|&\n]*(?:--lost-found|--unreachable|--dangling))"
    r"|(?P<directory>\bGIT_(?:DIR|OBJECT_DIRECTORY|ALTERNATE_OBJECT_DIRECTORIES)=)"
    r"|(?P<search>\bfind\s+(?:/|~)[^;|&\n]*(?:\.git\b|\.pack\b|\bobjects\b))"
    r"|(?P<process>/proc/(?:\d+|\*|\$\w+)/(?:root|cwd|environ|fd)\b)"
)


def outside_accesses(
    calls: Iterable[tuple[str, Any]], workspace: Path, hidden: Sequence[Path], home: Path | None = None
) -> tuple[OutsideAccess, ...]:
    """Return the accesses that name a hidden place, lead out of the workspace by `..`, or search for git objects.

    Args:
        calls: Name and input of each tool call.
        workspace: The workspace of the agent, which may be in a hidden place.
        hidden: Places that could show a solution.
        home: The home directory, for `~`.
    """
    found: dict[tuple[str, str], OutsideAccess] = {}
    for tool, value in calls:
        for key, text in _texts(value, "command" if isinstance(value, str) else ""):
            is_command = key in _COMMAND_KEYS
            for path in (*_paths(text, workspace, hidden, home, is_command=is_command), *_searches(text, is_command)):
                found.setdefault((tool, path), OutsideAccess(path=path, tool=tool, detail=text[:MAX_DETAIL]))
    return tuple(found.values())


def _texts(value: Any, key: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield key, value
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            if name not in _CONTENT_KEYS:
                yield from _texts(inner, str(name))
    elif isinstance(value, list | tuple):
        words = [one for one in value if isinstance(one, str)]
        if key in _COMMAND_KEYS and len(words) == len(value):  # an argument list
            yield key, " ".join(words)
        else:
            for inner in value:
                yield from _texts(inner, key)


def _searches(text: str, is_command: bool) -> Iterator[str]:
    if is_command:
        for match in _OBJECTS.finditer(_HERE_DOCUMENT.sub("", text)):
            yield match.group().strip()


def _paths(text: str, workspace: Path, hidden: Sequence[Path], home: Path | None, *, is_command: bool) -> Iterator[str]:
    """Return the paths in a text that are outside of the workspace and in a hidden place, or above the workspace."""
    here: str | None = str(workspace)
    words = _WORDS.findall(_HERE_DOCUMENT.sub("", text)) if is_command else [text]
    for before, word in zip(["", *words], words, strict=False):
        path = _resolve(word, here, home)
        if is_command and before == "cd":
            here = path if path is not None else (None if "$" in word else str(Path(here or "/") / word))
        if path is None or _is_inside(path, workspace):
            continue
        leads_up = ".." in word.split("/") and not word.startswith(("/", "~"))
        if leads_up or any(_is_inside(path, place) for place in hidden):
            yield path


def _resolve(word: str, here: str | None, home: Path | None) -> str | None:
    """Return the absolute path of a word that is a path; None if it is none, or if it depends on variables."""
    if "$" in word or "://" in word or "\0" in word:
        return None
    if word == "~" or word.startswith("~/"):
        return None if home is None else os.path.normpath(f"{home}{word[1:]}")
    if word.startswith("/"):
        return os.path.normpath(word)
    if here is None or ".." not in word.split("/"):
        return None
    return os.path.normpath(f"{here}/{word}")


def _is_inside(path: str, place: Path) -> bool:
    return path == str(place) or path.startswith(f"{place}{os.sep}")
