"""All files below a directory."""

import os
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from agent_loop.errors import WorkspaceError
from agent_loop.workspace.entries import Entry
from agent_loop.workspace.ignoring import IgnoreFiles

if TYPE_CHECKING:
    from agent_loop.workspace.workspace import Workspace

MAX_VISITED = 200_000
"""Entries that one walk looks at."""


def files_below(workspace: "Workspace", path: str | os.PathLike[str], check: Callable[[], None]) -> Iterator[Entry]:
    """See `Workspace.walk`. Each directory is opened anew from the root: a link put in its place stops the descent."""
    with workspace.open_directory(path) as (_, place):
        start, root = workspace.inside(place), place.root.path
    ignored = IgnoreFiles(workspace, root)
    pending = [iter(workspace.list(start))]
    visited = 0
    while pending:
        entry = next(pending[-1], None)
        if entry is None:
            pending.pop()
            continue
        visited += 1
        if visited > MAX_VISITED:
            raise WorkspaceError(f"there are more than {MAX_VISITED:,} entries below {path}; name a narrower path")
        if entry.kind not in {"file", "directory"}:
            continue
        if ignored.excludes(entry.parts, is_directory=entry.kind == "directory"):
            continue
        if entry.kind == "file":
            yield entry
            continue
        check()
        pending.append(iter(_listed(workspace, entry, root.joinpath(*entry.parts))))


def _listed(workspace: "Workspace", entry: Entry, path: os.PathLike[str]) -> tuple[Entry, ...]:
    """Nothing, where it cannot be opened, or is a link by now: a walk shows what can be seen."""
    try:
        found = workspace.list(path)
    except WorkspaceError:
        return ()
    return tuple(each for each in found if each.parts[:-1] == entry.parts)
