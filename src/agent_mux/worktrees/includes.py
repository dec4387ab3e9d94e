"""The file `.worktreeinclude`: which ignored files a new worktree needs (`.env`, `node_modules/`).

It has the syntax of `.gitignore`. Only files that git ignores are copied, so that a pattern cannot copy a tracked file
over another version of it.
"""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from agent_mux.errors import AgentMuxError
from agent_mux.worktrees.carrying import Carried, WorkingTree
from agent_mux.worktrees.copying import FileCopier

INCLUDE_FILE = ".worktreeinclude"
MAX_INCLUDE_FILE = 1 << 20  # bytes


class IncludePatterns:
    """The patterns of `.worktreeinclude`, and which of them named a path so far."""

    def __init__(self, lines: Sequence[str]) -> None:
        """Parse the lines of the file. Raises `ValueError` for one that is no pattern."""
        from pathspec import GitIgnoreSpec  # noqa: PLC0415  # few repositories need it

        self._all = GitIgnoreSpec.from_lines(lines)
        self._unmatched = {line: GitIgnoreSpec.from_lines([line]) for line in lines if line[0] not in "#!"}

    @property
    def unmatched(self) -> list[str]:
        """The entries that named no path; exceptions (`!name`) are not among them."""
        return list(self._unmatched)

    def match(self, path: str) -> bool:
        """Return whether the patterns name a path, relative to the top; one of a directory ends with `/`."""
        if not self._all.match_file(path):
            return False
        for line in [line for line, spec in self._unmatched.items() if spec.match_file(path)]:
            del self._unmatched[line]
        return True


class Included(NamedTuple):
    """What `.worktreeinclude` names."""

    paths: Sequence[str] = ()
    """Ignored files and directories to copy; a directory ends with `/`."""
    unmatched: Sequence[str] = ()
    """Entries that name none."""


def carry_included(
    tree: WorkingTree, copier: FileCopier, *, changed: Sequence[str] = (), submodules: Sequence[str] = ()
) -> Carried:
    """Copy what `.worktreeinclude` names, and return all that was carried. Raises `AgentMuxError` as `included_paths`.

    `changed` and `submodules`: what was carried before.
    """
    included = included_paths(tree)
    for path in included.paths:
        copier.copy(path)
    return Carried(
        changed=changed,
        included=included.paths,
        unmatched=included.unmatched,
        shared=copier.shared,
        submodules=submodules,
        skipped=copier.skipped,
    )


def included_paths(tree: WorkingTree) -> Included:
    """Return the ignored files and directories to copy.

    Raises `AgentMuxError` if the file cannot be read or has a pattern that is none.
    """
    patterns = include_patterns(tree.top)
    if patterns is None:
        return Included()
    found: list[str] = []
    for path in tree.ignored():
        if patterns.match(path):
            found.append(path)
        elif path.endswith("/"):
            found += _included_files(tree.top, path.rstrip("/"), patterns.match)
    return Included(found, patterns.unmatched)


def include_patterns(top: Path) -> IncludePatterns | None:
    """Return the patterns of the file in `top`; None if there are none. Raises `AgentMuxError` as `included_paths`."""
    lines = _read_patterns(top / INCLUDE_FILE)
    if not lines:
        return None
    try:
        return IncludePatterns(lines)
    except ValueError as error:
        raise AgentMuxError("SPAWN_ERROR", f"{top / INCLUDE_FILE} has an invalid pattern: {error}") from error


def _included_files(top: Path, directory: str, matches: Callable[[str], bool]) -> list[str]:
    """Return what matches inside of a directory that git ignores as a whole."""
    found: list[str] = []
    for place, directories, files in os.walk(top / directory):
        inside = os.path.relpath(place, top)
        directories.sort()
        whole = {name for name in directories if matches(f"{inside}/{name}/")}
        found += [f"{inside}/{name}/" for name in sorted(whole)]
        directories[:] = [name for name in directories if name not in whole]
        found += [f"{inside}/{name}" for name in sorted(files) if matches(f"{inside}/{name}")]
    return found


def _read_patterns(path: Path) -> list[str]:
    try:
        if not path.is_file():
            return []
        with path.open("rb") as file:
            content = file.read(MAX_INCLUDE_FILE + 1)
    except OSError as error:
        raise AgentMuxError("SPAWN_ERROR", f"{path} cannot be read: {error.strerror or error}") from error
    if len(content) > MAX_INCLUDE_FILE:
        raise AgentMuxError("SPAWN_ERROR", f"{path} is larger than {MAX_INCLUDE_FILE} bytes")
    return [line for line in content.decode("utf-8", "replace").splitlines() if line.strip()]
