"""The .gitignore files of a tree. The one nearest to an entry that says something about it decides, as with git."""

from pathlib import Path
from typing import TYPE_CHECKING

from agent_loop.errors import WorkspaceError
from agent_loop.workspace.entries import Parts
from agent_loop.workspace.ignore_rules import Rules, rules_of, verdict

if TYPE_CHECKING:
    from agent_loop.workspace.workspace import Workspace

MAX_IGNORE_BYTES = 1024 * 1024
"""Of one .gitignore; a larger one says nothing."""


class IgnoreFiles:
    """All .gitignore files from `root` downwards, each read once."""

    def __init__(self, workspace: "Workspace", root: Path) -> None:
        self._workspace = workspace
        self._root = root
        self._known: dict[Parts, Rules] = {}

    def excludes(self, parts: Parts, *, is_directory: bool) -> bool:
        """This entry itself is left out; the directories above it are not asked."""
        if parts[-1] == ".git":
            return True
        for depth in range(len(parts) - 1, -1, -1):
            said = verdict(self._of(parts[:depth]), parts[depth:], is_directory=is_directory)
            if said is not None:
                return said
        return False

    def hides(self, parts: Parts, *, below: int) -> bool:
        """This file or a directory on the way to it is left out; the first `below` names were asked for, and count."""
        directories = (parts[:end] for end in range(below + 1, len(parts)))
        return any(self.excludes(each, is_directory=True) for each in directories) or self.excludes(
            parts, is_directory=False
        )

    def _of(self, directory: Parts) -> Rules:
        if directory not in self._known:
            self._known[directory] = self._read(self._root.joinpath(*directory, ".gitignore"))
        return self._known[directory]

    def _read(self, path: Path) -> Rules:
        try:
            entry = self._workspace.stat(path, follow=False)
            if entry is None or entry.kind != "file":  # git does not follow links here either
                return ()
            data = self._workspace.read_bytes(path, MAX_IGNORE_BYTES)
        except WorkspaceError:
            return ()
        return rules_of(data.decode("utf-8", "surrogateescape").removeprefix("\ufeff"))
