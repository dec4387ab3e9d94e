"""A git worktree for one run (`isolation="worktree"`), so that concurrent runs do not change the same files.

The worktree is created from the commit that HEAD was when the run was requested, once the run is admitted. It begins
with the uncommitted state of the repository, with the ignored files that `.worktreeinclude` names, and with what a
setup command makes of them. At the end it is removed if it is unchanged since then, and kept otherwise. Even if
processes are killed, no work of an agent is lost.

A worktree separates runs, but is not a sandbox: an agent can access whatever its user can, and branches and
configuration are shared with the repository. Our calls of git run neither hooks nor the file-system monitor of the
repository. Filters (`filter.*` in its configuration, for example those of Git LFS) run as at any checkout; without them
files would be wrong. After the run, git is given the path of its directory instead of reading it from files that the
agent can change.
"""

import contextlib
import os
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from agent_mux._util.files import locked, make_directory
from agent_mux.errors import AgentMuxError, FieldError, ValidationError
from agent_mux.process.command import ProgramResult
from agent_mux.sdk.options import RunOptions
from agent_mux.worktrees.carrying import (
    CHECKOUT_TIMEOUT,
    Carried,
    WorkingTree,
    carry_files,
    carry_submodules,
    copy_missing,
)
from agent_mux.worktrees.copying import FileCopier
from agent_mux.worktrees.git import NO_REPOSITORY, REPOSITORY_VARIABLES, git_error, run_git
from agent_mux.worktrees.includes import carry_included
from agent_mux.worktrees.records import RecordDirectory, WorktreeRecord
from agent_mux.worktrees.repositories import GitDirectories, copy_index, find_repository
from agent_mux.worktrees.setup import run_setup
from agent_mux.worktrees.snapshots import WorkingTreeSnapshots, WorkingTreeState
from agent_mux.worktrees.state import Worktree

QUERY_TIMEOUT = 10.0  # seconds for a query of a repository
LOCK_TIMEOUT = 60.0  # seconds to wait for other processes that add or remove worktrees


@dataclass(frozen=True, slots=True, kw_only=True)
class WorktreePlan:
    """The worktree that a run will have."""

    git: str
    """Path of the git executable."""
    repository: str
    """Top of the working tree of the repository; without a repository, the directory that is copied."""
    common: str
    """Directory that all worktrees of the repository share; empty without one."""
    base: str | None
    """Commit from which the worktree is created; None: there is no repository, and the directory is copied."""
    path: Path
    cwd: str
    """Working directory of the agent: the same subdirectory as the requested one in the repository."""
    carry_changes: bool = True
    """Whether it begins with the uncommitted changes of the repository."""
    setup: tuple[str, ...] = ()
    """Command that prepares it, before the agent starts."""


def plan_worktree(
    options: RunOptions, run_id: str, environ: Mapping[str, str], directory: Path
) -> tuple[WorktreePlan, dict[str, str]]:
    """Return the plan, and the environment of a run that works there. Queries git, but changes nothing.

    `directory`: parent of all worktrees. Raises `ValidationError` if no worktree is possible.
    """
    plan = _plan(options, environ, directory / run_id)
    allowed = {
        name: value for name, value in environ.items() if name not in REPOSITORY_VARIABLES or name in options.env
    }
    return plan, allowed


def _plan(options: RunOptions, environ: Mapping[str, str], path: Path) -> WorktreePlan:
    cwd = options.working_directory()
    git = shutil.which("git", path=environ.get("PATH", os.defpath))
    if git is None:
        raise _isolation_error("git is not on PATH")
    try:
        words = ("rev-parse", "--show-cdup", "--git-common-dir", "HEAD^{commit}")
        answer = run_git(git, cwd, words, environ=environ, timeout=QUERY_TIMEOUT)
    except AgentMuxError as error:
        raise _isolation_error(error.message) from error
    here = os.path.realpath(cwd)
    setup = tuple(options.setup_command)
    if answer.exit_code != 0 and NO_REPOSITORY in answer.stderr:
        return WorktreePlan(git=git, repository=here, common="", base=None, path=path, cwd=str(path), setup=setup)
    if answer.exit_code != 0:
        has_commit = "HEAD^{commit}" not in answer.stderr
        raise _isolation_error(
            git_error(answer) if has_commit else "it has none yet: git commit --allow-empty -m Start"
        )
    up, _, rest = answer.stdout.rstrip("\n").partition("\n")
    common, newline, base = rest.rpartition("\n")
    if not newline or up.replace("../", ""):
        raise _isolation_error("cwd is not in its working tree")
    top, shared = (os.path.realpath(os.path.join(here, one)) for one in (up, common))  # noqa: PTH118  # with `..`
    inside = os.path.relpath(here, top)
    return WorktreePlan(
        git=git,
        repository=top,
        common=shared,
        base=base,
        path=path,
        cwd=os.path.normpath(path / inside),
        carry_changes=options.carry_changes,
        setup=setup,
    )


def _isolation_error(why: str) -> ValidationError:
    condition = "git is on PATH and the repository of cwd, if any, has a working tree and a commit"
    allowed = f"none; worktree where {condition} ({why})"
    return ValidationError([FieldError("isolation", "worktree", allowed)])


class RunWorktree:
    """The worktree of one run, from its creation to its end. All methods block; call them in a thread."""

    _CHANGED = "it has uncommitted changes"

    def __init__(self, plan: WorktreePlan, environ: Mapping[str, str]) -> None:
        """Prepare the worktree. `environ` is the agent's; it marks git as a process of the run."""
        self.plan = plan
        self._environ = environ
        self._git_dir = ""
        self._records = RecordDirectory(plan.path)
        self._start = ""
        self._staged = ""
        self._submodule_files: dict[str, tuple[int, int]] = {}
        self._carried = Carried()

    def create(self, is_wanted: Callable[[], bool]) -> str | None:
        """Create the worktree and return what was carried into it, for a person.

        `is_wanted` is polled. Raises `AgentMuxError` after removing what was created; ABORTED once `is_wanted` returns
        False.
        """
        plan = self.plan
        try:
            make_directory(plan.path.parent)
            plan.path.mkdir(mode=0o700)
            self._records.create()
        except OSError as error:
            self._records.remove()
            why = f"the worktree {plan.path} cannot be created: {error.strerror or error}"
            raise AgentMuxError("SPAWN_ERROR", why) from error
        try:
            note = self._fill(is_wanted)
            if plan.setup:
                run_setup(plan.setup, plan.cwd, self._environ, is_wanted)
            self._record_start(is_wanted)
        except BaseException as error:
            with contextlib.suppress(AgentMuxError, OSError):
                self._undo()
            if isinstance(error, OSError):
                why = f"the worktree {plan.path} cannot be filled: {error.strerror or error}"
                raise AgentMuxError("SPAWN_ERROR", why) from error
            raise
        return note

    def _fill(self, is_wanted: Callable[[], bool]) -> str | None:
        """Create the files. Returns a sentence for a person about them."""
        self._check_out(is_wanted)
        self._carry(is_wanted)
        return self._carried.describe()

    def _check_out(self, is_wanted: Callable[[], bool]) -> None:
        plan = self.plan
        words = ("worktree", "add", "--quiet", "--no-checkout", "--detach", str(plan.path), self._base)
        with self._lock():
            self._require_success(self._run_git(plan.repository, words, QUERY_TIMEOUT))
        answer = self._run_git(str(plan.path), ("rev-parse", "--absolute-git-dir"), QUERY_TIMEOUT)
        self._git_dir = answer.stdout.rstrip("\n")
        source = find_repository(Path(plan.repository))
        if plan.carry_changes and source is not None and copy_index(source.own, Path(self._git_dir)):
            # Conflicts are not written, and nothing after a filter failed; these files are copied with the changes.
            from_index = ("checkout-index", "--all", "--force", "-u", "-q")
            self._run_git(str(plan.path), from_index, CHECKOUT_TIMEOUT, is_wanted)
        else:
            from_commit = ("reset", "--quiet", "--hard")
            self._require_success(self._run_git(str(plan.path), from_commit, CHECKOUT_TIMEOUT, is_wanted))

    def _carry(self, is_wanted: Callable[[], bool]) -> None:
        plan, top = self.plan, Path(self.plan.repository)
        tree = WorkingTree(plan.git, top, self._environ, is_wanted)
        copier = FileCopier(top, plan.path, is_wanted)
        changed: list[str] = []
        submodules: list[str] = []
        if plan.carry_changes:
            try:
                copy_missing(tree, copier, plan.path)
                changed = carry_files(tree, copier, plan.path, self._base)
                submodules = carry_submodules(
                    tree, copier, lambda inner: WorkingTree(plan.git, inner, self._environ, is_wanted)
                )
            except AgentMuxError as error:
                if error.code == "ABORTED":
                    raise
                why = f"the uncommitted changes of {top} cannot be read: {error}"
                raise AgentMuxError("SPAWN_ERROR", f"{why}; to begin without them: carry_changes=False") from error
        self._require_inside()
        self._carried = carry_included(tree, copier, changed=changed, submodules=submodules)

    def _require_inside(self) -> None:
        """Create the working directory, which the commit may not contain. Raises `AgentMuxError` if it is elsewhere."""
        plan = self.plan
        if not Path(os.path.realpath(plan.cwd)).is_relative_to(os.path.realpath(plan.path)):
            raise AgentMuxError("SPAWN_ERROR", f"{plan.cwd} is outside of the worktree: in the commit, it is a link")
        try:
            Path(plan.cwd).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            what = f"{plan.cwd} is not a directory in the commit: {error.strerror or error}"
            raise AgentMuxError("SPAWN_ERROR", what) from error

    def _record_start(self, is_wanted: Callable[[], bool]) -> None:
        """Record the first state, with which the last one is compared."""
        plan = self.plan
        try:
            self._snapshots.prepare()
            self._start = self._snapshots.take(is_wanted)
        except AgentMuxError as error:
            if error.code == "ABORTED":
                raise
            self._start = ""  # too large to compare in this time: it will be kept
        self._staged = self._staged_entries()
        self._submodule_files = _states(plan.path, self._carried.submodules)
        self._records.write(
            WorktreeRecord(
                run_id=plan.path.name,
                repository=plan.repository,
                common=str(self._common),
                git_directory=self._git_dir,
                base=plan.base,
                start=self._start,
                created_at=int(time.time() * 1000),
                included=self._carried.included,
                shared=self._carried.shared,
            )
        )

    @cached_property
    def _snapshots(self) -> WorkingTreeSnapshots:
        plan = self.plan
        found = GitDirectories(plan.path, Path(self._git_dir), self._common)
        return WorkingTreeSnapshots(plan.git, found, self._store, self._environ, CHECKOUT_TIMEOUT, is_pinned=True)

    @property
    def _base(self) -> str:
        assert self.plan.base is not None  # noqa: S101  # the worktree of a repository
        return self.plan.base

    @property
    def _common(self) -> Path:
        """The directory of the objects that exist beside those of the snapshots."""
        return Path(self.plan.common)

    @property
    def _store(self) -> Path:
        """The directory with the index and the objects of the snapshots."""
        return self._records.path

    @property
    def start(self) -> WorkingTreeState | None:
        """The first state, once the worktree is created; None if it could not be determined."""
        return WorkingTreeState(self._snapshots, self._start) if self._start else None

    def _require_success(self, answer: ProgramResult) -> None:
        if answer.exit_code != 0:
            what = f"git could not create a worktree of {self.plan.repository} at {self.plan.path}"
            raise AgentMuxError("SPAWN_ERROR", f"{what}: {git_error(answer)}")

    def _lock(self) -> AbstractContextManager[None]:
        return worktree_lock(self.plan.path.parent, self.plan.common)

    def finish(self, end: str | None = None) -> tuple[Worktree, str | None]:
        """Remove the worktree if it is unchanged. Returns its final state and a warning, if any.

        `end`: its last snapshot, if one was taken since the agent ended.
        """
        plan = self.plan
        try:
            reason = self._changes(end) or self._remove()
        except (AgentMuxError, OSError) as error:
            reason = str(error)
        self._records.release()
        worktree = Worktree(path=str(plan.path), base_commit=plan.base, is_changed=reason is not None)
        if reason is None:
            self._records.remove()
            return worktree, None
        if not plan.path.exists():
            self._records.remove()
            return worktree, f"the worktree {plan.path} was removed during the run"
        shown = f"amux worktrees diff {plan.path.name}"
        return worktree, f"the worktree {plan.path} is kept: {reason}; see `{shown}`"

    def _changes(self, end: str | None) -> str | None:
        """Return why removing the worktree would lose work; None if it would not."""
        reason = self._changes_of_git()
        if reason is not None:
            return reason
        if not self._start:
            return "it could not be compared with its start"
        if (end or self._snapshots.take()) != self._start:
            return self._CHANGED
        if _states(self.plan.path, self._carried.submodules) != self._submodule_files:
            return "the files of a submodule were changed"
        return None

    def _changes_of_git(self) -> str | None:
        """Return what was committed or staged; None if nothing was."""
        heads = self._run_git(
            self.plan.repository, (*self._directories, "rev-list", "--walk-reflogs", "HEAD"), CHECKOUT_TIMEOUT
        )
        if heads.exit_code != 0 or set(heads.stdout.split()) != {self.plan.base}:
            return "it has new commits" if heads.exit_code == 0 else git_error(heads)
        return None if self._staged_entries() == self._staged else "it has staged changes"

    @property
    def _directories(self) -> tuple[str, str]:
        """Arguments that name the directories to git; the agent could have changed the file `.git` in the worktree."""
        return f"--git-dir={self._git_dir}", f"--work-tree={self.plan.path}"

    def _staged_entries(self) -> str:
        """Return the entries of the index. Raises `AgentMuxError`."""
        answer = self._run_git(str(self.plan.path), (*self._directories, "ls-files", "--stage", "-z"), CHECKOUT_TIMEOUT)
        if answer.exit_code != 0:
            raise AgentMuxError("SPAWN_ERROR", git_error(answer))
        return answer.stdout

    def _remove(self) -> str | None:
        # By force, because what was carried into it is not committed.
        words = ("worktree", "remove", "--force", str(self.plan.path))
        with self._lock():
            removed = self._run_git(self.plan.repository, words, CHECKOUT_TIMEOUT)
        return None if removed.exit_code == 0 else git_error(removed)

    def _undo(self) -> None:
        """Remove a worktree that was never used.

        Not with `prune`, which forgets every worktree that is not mounted now.
        """
        shutil.rmtree(self.plan.path, ignore_errors=True)
        self._records.remove()
        with self._lock():
            self._run_git(
                self.plan.repository, ("worktree", "remove", "--force", "--force", str(self.plan.path)), QUERY_TIMEOUT
            )

    def _run_git(
        self, directory: str, words: tuple[str, ...], seconds: float, is_wanted: Callable[[], bool] = lambda: True
    ) -> ProgramResult:
        return run_git(self.plan.git, directory, words, environ=self._environ, timeout=seconds, is_wanted=is_wanted)


def worktree_lock(directory: Path, common: str) -> AbstractContextManager[None]:
    """Lock a repository against concurrent changes of its worktrees.

    Git reads all worktrees when it adds or removes one, and fails if one is incomplete.

    Args:
        directory: The parent of our worktrees.
        common: The directory that all worktrees of the repository share.
    """
    return locked(Path(common), locks=directory.parent / "locks", timeout=LOCK_TIMEOUT)


def _states(top: Path, directories: Sequence[str]) -> dict[str, tuple[int, int]]:
    """Return time and size of each file below some directories, to notice changes that git does not report."""
    found = {}
    for directory in directories:
        for place, _, names in os.walk(top / directory):
            for name in names:
                state = os.lstat(os.path.join(place, name))  # noqa: PTH118
                found[f"{place}/{name}"] = (state.st_mtime_ns, state.st_size)
    return found
