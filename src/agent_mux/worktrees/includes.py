"""The file `.worktreeinclude`: which ignored files a new worktree needs (`.env`, `node_modules/`).

It has the syntax of `.gitignore`. Only files that git ignores are copied, so that a pattern cannot copy a tracked file
over another version of it.
"""

import os
from collections.abc import Callable
from pathlib import Path

from agent_mux.errors import AgentMuxError
from agent_mux.worktrees.carrying import WorkingTree

INCLUDE_FILE = ".worktreeinclude"
MAX_INCLUDE_FILE = 1 << 20  # bytes


def included_paths(tree: WorkingTree) -> list[str]:
    """Return the ignored files and directories to copy; a directory ends with `/`.

    Raises `AgentMuxError` if the file cannot be read or has a pattern that is none.
    """
    matches = included_matcher(tree.top)
    if matches is None:
        return []
    found: list[str] = []
    for path in tree.ignored():
        if matches(path):
            found.append(path)
        elif path.endswith("/"):
            found += _included_files(tree.top, path.rstrip("/"), matches)
    return found


def included_matcher(top: Path) -> Callable[[str], bool] | None:
    """Return whether the patterns name a path, as a function; None if there are no patterns.

    A path is relative to `top`; one of a directory ends with `/`. Raises `AgentMuxError` as `included_paths`.
    """
    lines = _read_patterns(top / INCLUDE_FILE)
    if not lines:
        return None
    from pathspec import GitIgnoreSpec  # noqa: PLC0415  # few repositories need it

    try:
        return GitIgnoreSpec.from_lines(lines).match_file
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
