"""Carry the uncommitted state of a working tree into a new one: its index, changed, deleted and untracked files."""

import contextlib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from agent_mux.errors import AgentMuxError
from agent_mux.worktrees.copying import FileCopier
from agent_mux.worktrees.git import git_error, no_filters, run_git

QUERY_TIMEOUT = 60.0  # seconds to compare a working tree with its index
CHECKOUT_TIMEOUT = 120.0  # seconds to write the files of an index
_MAX_NAMES = 3  # in a note


@dataclass(frozen=True, slots=True, kw_only=True)
class Carried:
    """What a new worktree has beside the files of its commit."""

    changed: Sequence[str] = ()
    """Uncommitted files that were copied, and deleted ones."""
    included: Sequence[str] = ()
    """Ignored files and directories that `.worktreeinclude` names."""
    unmatched: Sequence[str] = ()
    """Entries of `.worktreeinclude` that name nothing to copy."""
    shared: Sequence[str] = ()
    """Symbolic links that lead out of the repository: the worktree shares what is there."""
    submodules: Sequence[str] = ()
    """Submodules whose files were copied without their repository: git does not see changes in them."""
    skipped: Sequence[str] = ()
    """What could not be copied: sockets, files that vanished, repositories inside of the repository."""

    def describe(self, what: str = "the worktree") -> str | None:
        """Return one sentence for a person about what begins with it; None if there is nothing to report."""
        parts = [
            f"{len(paths)} {one if len(paths) == 1 else several} ({_names(paths)})"
            for paths, one, several in (
                (self.changed, "uncommitted file", "uncommitted files"),
                (self.included, "entry of .worktreeinclude", "entries of .worktreeinclude"),
                (self.shared, "link to a shared place", "links to shared places"),
                (self.submodules, "submodule without its history", "submodules without their history"),
            )
            if paths
        ]
        begun = [f"begins with {', '.join(parts)}"] if parts else []
        lacking = [f"lacks {_names(self.skipped)} (not copied)"] if self.skipped else []
        carried = [f"{what} {' and '.join(begun + lacking)}"] if begun or lacking else []
        if self.unmatched:
            one = len(self.unmatched) == 1
            entries = "entry of .worktreeinclude matches" if one else "entries of .worktreeinclude match"
            carried.append(f"{len(self.unmatched)} {entries} nothing to copy ({_names(self.unmatched)})")
        return "; ".join(carried) or None


def _names(paths: Sequence[str]) -> str:
    shown = ", ".join(path.encode("utf-8", "replace").decode() for path in paths[:_MAX_NAMES])
    return f"{shown}, ..." if len(paths) > _MAX_NAMES else shown


class WorkingTree:
    """A working tree whose uncommitted state is read. All methods block."""

    def __init__(
        self, git: str, top: Path, environ: Mapping[str, str], is_wanted: Callable[[], bool] = lambda: True
    ) -> None:
        """Prepare. `is_wanted` is polled; the methods raise ABORTED once it returns False."""
        self._git = git
        self._environ = environ
        self._is_wanted = is_wanted
        self.top = top

    def modified(self) -> list[str]:
        """Return the tracked files that differ from the index, deleted ones included.

        If a filter fails, for example because its program is missing, files are compared without filters.
        """
        words = ("diff-files", "--name-only", "-z", "--ignore-submodules=all")
        try:
            return self.names(*words)
        except AgentMuxError as error:
            filters = no_filters(self._git, self.top, self._environ)
            if error.code == "ABORTED" or not filters:
                raise
            return self.names(*filters, *words)

    def staged(self, commit: str) -> list[str]:
        """Return the files whose index entry differs from the commit."""
        return self.names("diff-index", "--cached", "--name-only", "-z", "--ignore-submodules=all", commit)

    def untracked(self) -> list[str]:
        """Return the files that are neither tracked nor ignored; a repository in the working tree ends with `/`."""
        return self.names("ls-files", "--others", "--exclude-standard", "-z")

    def ignored(self) -> list[str]:
        """Return the ignored files; of a directory that is ignored as a whole its path, which ends with `/`."""
        return self.names("ls-files", "--others", "--ignored", "--exclude-standard", "--directory", "-z")

    def submodules(self) -> list[str]:
        """Return the paths of submodules that are checked out."""
        entries = (entry.partition("\t") for entry in self.names("ls-files", "--stage", "-z"))
        return [path for head, _, path in entries if head.startswith("160000 ") and (self.top / path / ".git").exists()]

    def tracked(self) -> list[str]:
        """Return the paths of tracked files, relative to the top of the working tree."""
        return self.names("ls-files", "-z")

    def names(self, *words: str) -> list[str]:
        """Return the names, or lines, that a command of git prints. Raises `AgentMuxError`."""
        answer = run_git(
            self._git,
            str(self.top),
            words,
            environ=self._environ,
            timeout=QUERY_TIMEOUT,
            is_wanted=self._is_wanted,
            errors="surrogateescape",
        )
        if answer.exit_code != 0:
            raise AgentMuxError("SPAWN_ERROR", f"git {words[0]} in {self.top}: {git_error(answer)}")
        return answer.stdout.split("\0")[:-1]


def copy_missing(tree: WorkingTree, copier: FileCopier, target: Path) -> None:
    """Copy the tracked files that are not in the target yet. Raises `AgentMuxError`."""
    for path in tree.tracked():
        source = tree.top / path
        if not os.path.lexists(target / path) and (source.is_symlink() or source.is_file()):
            copier.copy(path)


def carry_files(tree: WorkingTree, copier: FileCopier, target: Path, commit: str | None) -> list[str]:
    """Copy what differs from the index, and remove what was deleted, in a target with a copy of the index.

    Args:
        tree: The working tree to read.
        copier: Copies from there to `target`.
        target: Top of the new working tree.
        commit: The commit that both begin with; None: there is none yet.

    Returns:
        The paths that differ from the commit, sorted; files that are only staged are among them.

    Raises:
        AgentMuxError: The working tree cannot be read.
    """
    carried = [] if commit is None else tree.staged(commit)
    for path in tree.modified():
        if (tree.top / path).is_symlink() or (tree.top / path).is_file():
            copier.copy(path)
        else:  # deleted, or a directory that is made by its untracked files
            with contextlib.suppress(FileNotFoundError, NotADirectoryError, IsADirectoryError):
                (target / path).unlink()
        carried.append(path)
    for path in tree.untracked():
        if path.endswith("/"):
            copier.skipped.append(path)
            continue
        copier.copy(path)
        carried.append(path)
    return sorted(set(carried))


def carry_submodules(tree: WorkingTree, copier: FileCopier, nested: Callable[[Path], WorkingTree]) -> list[str]:
    """Copy the files of submodules that are checked out, without their repositories. Returns their paths."""
    carried = tree.submodules()
    for path in carried:
        inner = nested(tree.top / path)
        inner_paths = {*inner.tracked(), *(one for one in inner.untracked() if not one.endswith("/"))}
        for one in sorted(inner_paths):
            if not (tree.top / path / one).is_dir():
                copier.copy(f"{path}/{one}")
    return carried
