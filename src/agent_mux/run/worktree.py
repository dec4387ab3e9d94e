"""A git worktree for one run (`isolation="worktree"`), so that concurrent runs do not change the same files.

The worktree is created from the commit that HEAD was when the run was requested, once the run is admitted. At the end
it is removed if it is unchanged, and kept otherwise. Even if processes are killed, no work of an agent is lost.

A worktree separates runs, but is no sandbox: an agent can access whatever its user can, and branches and configuration
are shared with the repository. Our calls of git run neither hooks nor the file-system monitor of the repository.
Filters (`filter.*` in its configuration, for example those of Git LFS) run as at any checkout; without them files would
be wrong. After the run, git is given the path of its directory instead of reading it from files that the agent can
change.
"""

import contextlib
import os
import shutil
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from agent_mux._util.files import locked, make_directory
from agent_mux.errors import AgentMuxError, FieldError, ValidationError
from agent_mux.process.command import ProgramResult
from agent_mux.run.git import REPOSITORY_VARIABLES, git_error, run_git
from agent_mux.run.result import Worktree
from agent_mux.sdk.options import RunOptions

QUERY_TIMEOUT = 10.0  # seconds for a query of a repository
CHECKOUT_TIMEOUT = 120.0  # seconds to fill a worktree, or to compare it
LOCK_TIMEOUT = 60.0  # seconds to wait for other processes that add or remove worktrees


@dataclass(frozen=True, slots=True, kw_only=True)
class WorktreePlan:
    """The worktree that a run will have."""

    git: str
    """Path of the git executable."""
    repository: str
    """Top of the working tree of the repository."""
    common: str
    """Directory that all worktrees of the repository share."""
    base: str
    """Commit from which the worktree is created."""
    path: Path
    cwd: str
    """Working directory of the agent: the same subdirectory as the requested one in the repository."""


def plan_worktree(
    options: RunOptions, run_id: str, environ: Mapping[str, str], directory: Path
) -> tuple[WorktreePlan, dict[str, str]]:
    """Return the plan, and the environment of a run that works there. Queries git, but changes nothing.

    `directory`: parent of all worktrees. Raises `ValidationError` if no worktree is possible.
    """
    plan = _plan(options.working_directory(), environ, directory / run_id)
    allowed = {
        name: value for name, value in environ.items() if name not in REPOSITORY_VARIABLES or name in options.env
    }
    return plan, allowed


def _plan(cwd: str, environ: Mapping[str, str], path: Path) -> WorktreePlan:
    git = shutil.which("git", path=environ.get("PATH", os.defpath))
    if git is None:
        raise _isolation_error("git is not on PATH")
    try:
        words = ("rev-parse", "--show-cdup", "--git-common-dir", "HEAD^{commit}")
        answer = run_git(git, cwd, words, environ=environ, timeout=QUERY_TIMEOUT)
    except AgentMuxError as error:
        raise _isolation_error(error.message) from error
    if answer.exit_code != 0:
        raise _isolation_error(git_error(answer))
    up, _, rest = answer.stdout.rstrip("\n").partition("\n")
    common, newline, base = rest.rpartition("\n")
    if not newline or up.replace("../", ""):
        raise _isolation_error("cwd is not in its working tree")
    here = os.path.realpath(cwd)
    top, shared = (os.path.realpath(os.path.join(here, one)) for one in (up, common))  # noqa: PTH118  # with `..`
    inside = os.path.relpath(here, top)
    return WorktreePlan(
        git=git, repository=top, common=shared, base=base, path=path, cwd=os.path.normpath(path / inside)
    )


def _isolation_error(why: str) -> ValidationError:
    allowed = f"none; worktree where cwd is in a git repository that has a commit ({why})"
    return ValidationError([FieldError("isolation", "worktree", allowed)])


class RunWorktree:
    """The worktree of one run, from its creation to its end. All methods block; call them in a thread."""

    def __init__(self, plan: WorktreePlan, environ: Mapping[str, str]) -> None:
        """Prepare the worktree. `environ` is the agent's; it marks git as a process of the run."""
        self.plan = plan
        self._environ = environ
        self._git_dir = ""

    def create(self, is_wanted: Callable[[], bool]) -> str | None:
        """Create the worktree and return a warning, if any. Raises `AgentMuxError` after removing what was created.

        `is_wanted` is polled; the method raises ABORTED once it returns False.
        """
        plan = self.plan
        try:
            make_directory(plan.path.parent)
            plan.path.mkdir(mode=0o700)
        except OSError as error:
            why = f"the worktree {plan.path} cannot be created: {error.strerror or error}"
            raise AgentMuxError("SPAWN_ERROR", why) from error
        try:
            self._check_out(is_wanted)
            note = self._uncommitted_note(is_wanted)
        except BaseException:
            with contextlib.suppress(AgentMuxError, OSError):
                self._undo()
            raise
        return note

    def _check_out(self, is_wanted: Callable[[], bool]) -> None:
        plan = self.plan
        words = ("worktree", "add", "--quiet", "--no-checkout", "--detach", str(plan.path), plan.base)
        with self._lock():
            self._require_success(self._run_git(plan.repository, words, QUERY_TIMEOUT))
        self._require_success(
            self._run_git(str(plan.path), ("reset", "--quiet", "--hard"), CHECKOUT_TIMEOUT, is_wanted)
        )
        answer = self._run_git(str(plan.path), ("rev-parse", "--absolute-git-dir"), QUERY_TIMEOUT)
        self._git_dir = answer.stdout.rstrip("\n")
        if not Path(os.path.realpath(plan.cwd)).is_relative_to(os.path.realpath(plan.path)):
            raise AgentMuxError("SPAWN_ERROR", f"{plan.cwd} is outside of the worktree: in the commit, it is a link")
        try:
            Path(plan.cwd).mkdir(parents=True, exist_ok=True)  # the commit may not contain it
        except OSError as error:
            what = f"{plan.cwd} is not a directory in the commit: {error.strerror or error}"
            raise AgentMuxError("SPAWN_ERROR", what) from error

    def _require_success(self, answer: ProgramResult) -> None:
        if answer.exit_code != 0:
            what = f"git could not create a worktree of {self.plan.repository} at {self.plan.path}"
            raise AgentMuxError("SPAWN_ERROR", f"{what}: {git_error(answer)}")

    def _lock(self) -> AbstractContextManager[None]:
        """Lock the repository against concurrent changes of its worktrees.

        Git reads all worktrees when it adds or removes one, and fails if one is incomplete.
        """
        return locked(Path(self.plan.common), locks=self.plan.path.parents[1] / "locks", timeout=LOCK_TIMEOUT)

    def _uncommitted_note(self, is_wanted: Callable[[], bool]) -> str | None:
        plan = self.plan
        try:
            answer = self._run_git(plan.repository, ("status", *_STATUS_OPTIONS), QUERY_TIMEOUT, is_wanted)
        except AgentMuxError as error:
            if error.code == "ABORTED":
                raise
            return None  # a working tree that is too large to check in this time
        if answer.exit_code != 0 or not answer.stdout:
            return None
        return f"uncommitted changes in {plan.repository} are not in the worktree of this run"

    def finish(self) -> tuple[Worktree, str | None]:
        """Remove the worktree if it is unchanged. Returns its final state and a warning, if any."""
        plan = self.plan
        try:
            reason = self._changes() or self._remove()
        except (AgentMuxError, OSError) as error:
            reason = str(error)
        worktree = Worktree(path=str(plan.path), base_commit=plan.base, is_changed=reason is not None)
        if reason is None:
            return worktree, None
        if not plan.path.exists():
            return worktree, f"the worktree {plan.path} was removed during the run"
        return worktree, f"the worktree {plan.path} is kept: {reason}; remove it with `git worktree remove`"

    def _changes(self) -> str | None:
        """Return why removing the worktree would lose work; None if it would not."""
        # Not `git -C`: the agent could have changed the file `.git` in the worktree.
        where = (f"--git-dir={self._git_dir}", f"--work-tree={self.plan.path}")
        heads = self._run_git(self.plan.repository, (*where, "rev-list", "--walk-reflogs", "HEAD"), CHECKOUT_TIMEOUT)
        if heads.exit_code != 0 or set(heads.stdout.split()) != {self.plan.base}:
            return "it has new commits" if heads.exit_code == 0 else git_error(heads)
        files = self._run_git(str(self.plan.path), (*where, "status", *_STATUS_OPTIONS), CHECKOUT_TIMEOUT)
        if files.exit_code != 0:
            return git_error(files)
        return "it has uncommitted changes" if files.stdout else None

    def _remove(self) -> str | None:
        with self._lock():
            removed = self._run_git(self.plan.repository, ("worktree", "remove", str(self.plan.path)), CHECKOUT_TIMEOUT)
        return None if removed.exit_code == 0 else git_error(removed)

    def _undo(self) -> None:
        """Remove a worktree that was never used.

        Not with `prune`, which forgets every worktree that is not mounted now.
        """
        shutil.rmtree(self.plan.path, ignore_errors=True)
        with self._lock():
            self._run_git(
                self.plan.repository, ("worktree", "remove", "--force", "--force", str(self.plan.path)), QUERY_TIMEOUT
            )

    def _run_git(
        self, directory: str, words: tuple[str, ...], seconds: float, is_wanted: Callable[[], bool] = lambda: True
    ) -> ProgramResult:
        return run_git(self.plan.git, directory, words, environ=self._environ, timeout=seconds, is_wanted=is_wanted)


_STATUS_OPTIONS = ("--porcelain", "--untracked-files=normal", "--ignore-submodules=dirty")
"""Skip the content of submodules, which have their own configuration. Git removes no worktree with submodules."""
