"""What .gitignore leaves out. The file nearest to an entry that says something about it decides, as with git."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pathspec import GitIgnoreSpec

from agent_loop.errors import WorkspaceError
from agent_loop.workspace.entries import Parts

if TYPE_CHECKING:
    from agent_loop.workspace.workspace import Workspace

MAX_IGNORE_BYTES = 1024 * 1024
"""Of one .gitignore; a larger one says nothing."""


class IgnoreFiles:
    """All .gitignore files from `root` downwards, each read once."""

    def __init__(self, workspace: "Workspace", root: Path) -> None:
        self._workspace = workspace
        self._root = root
        self._known: dict[Parts, GitIgnoreSpec | None] = {}

    def excludes(self, parts: Parts, *, is_directory: bool) -> bool:
        """This entry itself is left out; the directories above it are not asked."""
        if parts[-1] == ".git":
            return True
        for depth in range(len(parts) - 1, -1, -1):
            spec = self._of(parts[:depth])
            if spec is None:
                continue
            said = spec.check_file("/".join(parts[depth:]) + ("/" if is_directory else "")).include
            if said is not None:
                return said
        return False

    def hides(self, parts: Parts, *, below: int) -> bool:
        """This file or a directory on the way to it is left out; the first `below` names were asked for, and count."""
        directories = (parts[:end] for end in range(below + 1, len(parts)))
        return any(self.excludes(each, is_directory=True) for each in directories) or self.excludes(
            parts, is_directory=False
        )

    def _of(self, directory: Parts) -> GitIgnoreSpec | None:
        if directory not in self._known:
            self._known[directory] = self._read(self._root.joinpath(*directory, ".gitignore"))
        return self._known[directory]

    def _read(self, path: Path) -> GitIgnoreSpec | None:
        try:
            entry = self._workspace.stat(path, follow=False)
            if entry is None or entry.kind != "file":  # git does not follow links here either
                return None
            data = self._workspace.read_bytes(path, MAX_IGNORE_BYTES)
        except WorkspaceError:
            return None
        return spec_of(data.decode("utf-8", "surrogateescape").removeprefix("\ufeff").splitlines())


def spec_of(lines: Sequence[str]) -> GitIgnoreSpec | None:
    """The rules of these lines; lines that are no patterns say nothing, as with git. None: no rules."""
    good = [line for line in lines if line.strip() and not line.startswith("#") and _is_pattern(line)]
    return GitIgnoreSpec.from_lines(good) if good else None


def _is_pattern(line: str) -> bool:
    try:
        GitIgnoreSpec.from_lines([line])
    except ValueError:
        return False
    return True
