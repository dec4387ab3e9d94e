"""What somebody wrote as a path, taken apart. Pure: nothing here looks at the disk."""

import os
from dataclasses import dataclass

from agent_loop.errors import WorkspaceError
from agent_loop.workspace.entries import printable

MAX_LENGTH = 4096
"""Characters: PATH_MAX of Linux. Longer paths cannot be meant."""


@dataclass(frozen=True, slots=True)
class Expression:
    """A path as names. ".." stays: where it leads depends on the links before it."""

    is_absolute: bool
    parts: tuple[str, ...]


def expression_of(path: str | os.PathLike[str]) -> Expression:
    """Raises `WorkspaceError` for what can be no path."""
    text = os.fspath(path)
    if not text:
        raise WorkspaceError('the path is empty; give a path, for example "." for the whole workspace')
    if "\0" in text:
        raise WorkspaceError(f"the path {shortened(text)} contains a NUL character; give a path without it")
    if len(text) > MAX_LENGTH:
        raise WorkspaceError(f"the path {shortened(text)} is {len(text)} characters long; at most {MAX_LENGTH} work")
    try:
        os.fsencode(text)
    except UnicodeEncodeError as error:
        raise WorkspaceError(f"the path {shortened(text)} has a character that no file name can have") from error
    return Expression(text.startswith("/"), tuple(part for part in text.split("/") if part not in {"", "."}))


def shortened(text: str) -> str:
    """A path for a sentence: quoted, printable and not endless."""
    return repr(printable(text if len(text) <= 200 else f"{text[:200]}..."))
