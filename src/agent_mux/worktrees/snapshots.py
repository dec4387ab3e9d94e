"""Snapshots of a git working tree: tree objects in a directory of ours. Nothing is written into the repository."""

from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from agent_mux._util.files import make_directory
from agent_mux.errors import AgentMuxError
from agent_mux.worktrees.git import (
    FileDifference,
    difference_words,
    git_error,
    patch_words,
    quoted_path,
    read_differences,
    run_git,
)
from agent_mux.worktrees.repositories import GitDirectories, copy_index


class WorkingTreeSnapshots:
    """Takes and compares snapshots of one working tree, with all files that git does not ignore. All methods block."""

    def __init__(  # noqa: PLR0913  # what one call of git needs
        self,
        git: str,
        found: GitDirectories,
        store: Path,
        environ: Mapping[str, str],
        timeout: float,
        *,
        is_pinned: bool = False,
    ) -> None:
        """Prepare snapshots.

        Args:
            git: Path of the git executable.
            found: The working tree.
            store: Directory for an index and objects; it is created, outside of the working tree.
            environ: Environment of git.
            timeout: Seconds for each call of git.
            is_pinned: Whether git is given its directories instead of reading them from the file `.git`, which an agent
                may have changed.
        """
        self._git = git
        self._found = found
        self._index = store / "index"
        self._objects = store / "objects"
        self._environ = environ
        self._timeout = timeout
        self._is_pinned = is_pinned

    @property
    def top(self) -> Path:
        """Top of the working tree."""
        return self._found.top

    @property
    def variables(self) -> dict[str, str]:
        """Environment variables by which git finds the objects of the snapshots, beside those of the repository."""
        pinned = {"GIT_DIR": str(self._found.own), "GIT_WORK_TREE": str(self._found.top)} if self._is_pinned else {}
        return {
            **pinned,
            "GIT_INDEX_FILE": str(self._index),
            "GIT_OBJECT_DIRECTORY": str(self._objects),
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": quoted_path(str(self._found.common / "objects")),
        }

    def prepare(self) -> None:
        """Create the store. Raises `OSError`."""
        make_directory(self._objects)
        if not self._index.exists():
            copy_index(self._found.own, self._index.parent)

    def take(self, is_wanted: Callable[[], bool] = lambda: True) -> str:
        """Return the id of a tree object with the present content of the working tree. Raises `AgentMuxError`."""
        # A file that cannot be read is left out, and git exits with 1.
        self.run(("add", "--all", "--ignore-errors", "."), is_wanted, accepted=(0, 1))
        return self.run(("write-tree",), is_wanted).strip()

    def differences(self, before: str, after: str) -> list[FileDifference]:
        """Return the files that differ between two snapshots. Raises `AgentMuxError`."""
        return [] if before == after else read_differences(self.run(difference_words(before, after)))

    def write_patch(self, before: str, after: str, path: Path) -> None:
        """Write the difference of two snapshots as a patch, byte for byte, into a private file.

        Raises `AgentMuxError` and `OSError`.
        """
        path.unlink(missing_ok=True)
        path.touch(0o600, exist_ok=False)
        self.run(patch_words(before, after, path))

    def run(
        self,
        words: tuple[str, ...],
        is_wanted: Callable[[], bool] = lambda: True,
        *,
        stdin: bytes = b"",
        accepted: tuple[int, ...] = (0,),
    ) -> str:
        """Run git in the working tree, with the objects of the snapshots. Raises `AgentMuxError`."""
        answer = run_git(
            self._git,
            str(self._found.top),
            words,
            environ=self._environ,
            timeout=self._timeout,
            added=self.variables,
            stdin=stdin,
            is_wanted=is_wanted,
        )
        if answer.exit_code not in accepted:
            raise AgentMuxError("SPAWN_ERROR", f"git {words[0]}: {git_error(answer)}")
        return answer.stdout


class WorkingTreeState(msgspec.Struct, frozen=True):
    """A state of a working tree, and the snapshots to compare it with."""

    snapshots: WorkingTreeSnapshots
    tree: str
    """Tree object of the state."""
