"""A copy of a directory that is in no git repository, for one run (`isolation="worktree"`).

The copy is a plain directory. A private git directory beside it, which nothing in the copy configures, compares its
files with those of the start. Files that git ignores are copied, but not compared, as in a worktree.
"""

from collections.abc import Callable, Mapping
from pathlib import Path

from agent_mux.worktrees.directory_copies import copy_directory, notes_of
from agent_mux.worktrees.git import RAW_ATTRIBUTES
from agent_mux.worktrees.removal import remove_directory
from agent_mux.worktrees.worktree import QUERY_TIMEOUT, RunWorktree, WorktreePlan

GIT_DIRECTORY = "git"
"""The private git directory, in the directory of the record."""


def worktree_of(plan: WorktreePlan, environ: Mapping[str, str]) -> RunWorktree:
    """Return the worktree of a plan, not created yet: of a repository, or a copy of a directory without one."""
    return RunWorktree(plan, environ) if plan.base is not None else RunCopy(plan, environ)


class RunCopy(RunWorktree):
    """The copy of a directory for one run. All methods block; call them in a thread."""

    _CHANGED = "it has changed files"

    def _fill(self, is_wanted: Callable[[], bool]) -> str | None:
        plan, config_dir = self.plan, self.plan.path.parents[1]
        source = Path(plan.repository)
        result = copy_directory(source, plan.path, is_wanted, (config_dir,))
        self._carried = result.carried
        self._git_dir = str(self._store)
        self._require_success(self._run_git(str(plan.path.parent), self._words_of_init, QUERY_TIMEOUT))
        information = self._store / "info"
        information.mkdir(exist_ok=True)
        (information / "attributes").write_text(RAW_ATTRIBUTES)
        carried = self._carried.describe("it")
        about = f"the worktree is a copy of {source}, which is in no git repository"
        return "; ".join([about, *([] if carried is None else [carried]), *notes_of(result)])

    @property
    def _words_of_init(self) -> tuple[str, ...]:
        return "init", "--quiet", "--bare", "--template=", "--object-format=sha1", self._git_dir

    @property
    def _common(self) -> Path:
        return self._store

    @property
    def _store(self) -> Path:
        return self._records.path / GIT_DIRECTORY

    def _staged_entries(self) -> str:
        return ""

    def _changes_of_git(self) -> str | None:
        return None

    def _remove(self) -> str | None:
        remove_directory(self.plan.path)
        return None

    def _undo(self) -> None:
        self._records.remove()
        remove_directory(self.plan.path)
