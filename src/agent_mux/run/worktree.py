"""A git worktree of its own for a run (`isolation="worktree"`): runs side by side do not meet.

It is made from the commit that HEAD was when the run was asked for, once the run has its place; at the end it is
removed if nothing was done in it, and stays otherwise. Whoever is killed, nothing that an agent did is lost.

It keeps runs apart; it is no sandbox: an agent can go wherever its user can, and branches and configuration are those
of the repository. What git does here for us runs no hook and no file-system monitor of the repository; filters
(`filter.*` in its configuration, for instance those of Git LFS) run as at any checkout, or files would be wrong.
After the run, git is told where its directory is, and does not ask the agent's files.
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
from agent_mux.process.command import MAX_ERROR_LINE, ProgramResult, run_program
from agent_mux.run.result import Worktree
from agent_mux.sdk.options import RunOptions

REPOSITORY_VARIABLES = frozenset(
    f"GIT_{name}"
    for name in (
        "ALTERNATE_OBJECT_DIRECTORIES", "COMMON_DIR", "DIR", "GRAFT_FILE", "IMPLICIT_WORK_TREE", "INDEX_FILE",
        "INTERNAL_SUPER_PREFIX", "NO_REPLACE_OBJECTS", "OBJECT_DIRECTORY", "PREFIX", "REPLACE_REF_BASE",
        "SHALLOW_FILE", "WORK_TREE",
    )
)  # fmt: skip
"""Variables that name one repository (of `git rev-parse --local-env-vars`): hooks have them set, and they would win."""
_SAFE = ("core.fsmonitor=false", f"core.hooksPath={os.devnull}", "core.logAllRefUpdates=true")
LOOK = 10.0  # seconds for a question about a repository
WORK = 120.0  # seconds to fill a worktree, or to compare it
TURN = 60.0  # seconds that others may take to add and remove theirs


@dataclass(frozen=True, slots=True, kw_only=True)
class WorktreePlan:
    """The worktree that a run will have."""

    git: str
    """Path of the program."""
    repository: str
    """Top of the working tree that it is made from."""
    common: str
    """Where git keeps what all worktrees share."""
    base: str
    """The commit."""
    path: Path
    cwd: str
    """Where the agent works: as deep in it as it was asked to work in the repository."""


def plan_worktree(
    options: RunOptions, run_id: str, environ: Mapping[str, str], directory: Path
) -> tuple[WorktreePlan, dict[str, str]]:
    """The plan, and the environment of a run that works there. Asks git, and changes nothing.

    `directory`: where worktrees are. Raises `ValidationError` where none can be made.
    """
    plan = _planned(options.working_directory(), environ, directory / run_id)
    kept = {name: value for name, value in environ.items() if name not in REPOSITORY_VARIABLES or name in options.env}
    return plan, kept


def _planned(cwd: str, environ: Mapping[str, str], path: Path) -> WorktreePlan:
    git = shutil.which("git", path=environ.get("PATH", os.defpath))
    if git is None:
        raise _impossible("git is not on PATH")
    try:
        answer = _git(git, cwd, ("rev-parse", "--show-cdup", "--git-common-dir", "HEAD^{commit}"), environ, LOOK)
    except AgentMuxError as error:
        raise _impossible(error.message) from error
    if answer.exit_code != 0:
        raise _impossible(_complaint(answer))
    up, _, rest = answer.stdout.rstrip("\n").partition("\n")
    common, newline, base = rest.rpartition("\n")
    if not newline or up.replace("../", ""):
        raise _impossible("cwd is not in its working tree")
    here = os.path.realpath(cwd)
    top, shared = (os.path.realpath(os.path.join(here, one)) for one in (up, common))  # noqa: PTH118  # with `..`
    inside = os.path.relpath(here, top)
    return WorktreePlan(
        git=git, repository=top, common=shared, base=base, path=path, cwd=os.path.normpath(path / inside)
    )


def _impossible(why: str) -> ValidationError:
    allowed = f"none; worktree where cwd is in a git repository that has a commit ({why})"
    return ValidationError([FieldError("isolation", "worktree", allowed)])


class RunWorktree:
    """The worktree of one run, from its making to its end. Blocking: for a thread."""

    def __init__(self, plan: WorktreePlan, environ: Mapping[str, str]) -> None:
        """`environ`: of the agent; git is marked as a process of the run by it."""
        self.plan = plan
        self._environ = environ
        self._git_dir = ""

    def make(self, is_wanted: Callable[[], bool]) -> str | None:
        """Make it. Returns what there is to say about it. Raises `AgentMuxError`; nothing of it is left then.

        `is_wanted`: asked meanwhile; once it is not, this ends with ABORTED.
        """
        plan = self.plan
        try:
            make_directory(plan.path.parent)
            plan.path.mkdir(mode=0o700)
        except OSError as error:
            why = f"the worktree {plan.path} cannot be made: {error.strerror or error}"
            raise AgentMuxError("SPAWN_ERROR", why) from error
        try:
            self._check_out(is_wanted)
            note = self._what_is_left_out(is_wanted)
        except BaseException:
            with contextlib.suppress(AgentMuxError, OSError):
                self._undo()
            raise
        return note

    def _check_out(self, is_wanted: Callable[[], bool]) -> None:
        plan = self.plan
        words = ("worktree", "add", "--quiet", "--no-checkout", "--detach", str(plan.path), plan.base)
        with self._turn():
            self._need(self._ask(plan.repository, words, LOOK))
        self._need(self._ask(str(plan.path), ("reset", "--quiet", "--hard"), WORK, is_wanted))
        self._git_dir = self._ask(str(plan.path), ("rev-parse", "--absolute-git-dir"), LOOK).stdout.rstrip("\n")
        if not Path(os.path.realpath(plan.cwd)).is_relative_to(os.path.realpath(plan.path)):
            raise AgentMuxError("SPAWN_ERROR", f"{plan.cwd} leads out of the worktree: in the commit, it is a link")
        try:
            Path(plan.cwd).mkdir(parents=True, exist_ok=True)  # the commit may have nothing there
        except OSError as error:
            what = f"{plan.cwd} is no directory in the commit: {error.strerror or error}"
            raise AgentMuxError("SPAWN_ERROR", what) from error

    def _need(self, answer: ProgramResult) -> None:
        if answer.exit_code != 0:
            what = f"git could not make a worktree of {self.plan.repository} at {self.plan.path}"
            raise AgentMuxError("SPAWN_ERROR", f"{what}: {_complaint(answer)}")

    def _turn(self) -> AbstractContextManager[None]:
        """Git reads what it knows of all worktrees when it adds or removes one, and fails where one is half there."""
        return locked(Path(self.plan.common), locks=self.plan.path.parents[1] / "locks", timeout=TURN)

    def _what_is_left_out(self, is_wanted: Callable[[], bool]) -> str | None:
        plan = self.plan
        try:
            answer = self._ask(plan.repository, ("status", *_HOW_TO_LOOK), LOOK, is_wanted)
        except AgentMuxError as error:
            if error.code == "ABORTED":
                raise
            return None  # a tree that is too large to look at in this time
        if answer.exit_code != 0 or not answer.stdout:
            return None
        return f"changes in {plan.repository} that are not committed are not in the worktree of this run"

    def leave(self) -> tuple[Worktree, str | None]:
        """Remove it if nothing was done in it. Returns what became of it, and what there is to say about it."""
        plan = self.plan
        try:
            reason = self._changes() or self._not_removed()
        except (AgentMuxError, OSError) as error:
            reason = str(error)
        told = Worktree(path=str(plan.path), base_commit=plan.base, is_changed=reason is not None)
        if reason is None:
            return told, None
        if not plan.path.exists():
            return told, f"the worktree {plan.path} is gone: it was removed during the run"
        return told, f"the worktree {plan.path} stays: {reason}; when you are done, `git worktree remove` it"

    def _changes(self) -> str | None:
        """What was done in it, as far as anything would be lost with it; None: nothing."""
        # Not `git -C`: the file `.git` in it was the agent's to write.
        where = (f"--git-dir={self._git_dir}", f"--work-tree={self.plan.path}")
        heads = self._ask(self.plan.repository, (*where, "rev-list", "--walk-reflogs", "HEAD"), WORK)
        if heads.exit_code != 0 or set(heads.stdout.split()) != {self.plan.base}:
            return "there are commits in it" if heads.exit_code == 0 else _complaint(heads)
        files = self._ask(str(self.plan.path), (*where, "status", *_HOW_TO_LOOK), WORK)
        if files.exit_code != 0:
            return _complaint(files)
        return "there are changes in it" if files.stdout else None

    def _not_removed(self) -> str | None:
        with self._turn():
            removed = self._ask(self.plan.repository, ("worktree", "remove", str(self.plan.path)), WORK)
        return None if removed.exit_code == 0 else _complaint(removed)

    def _undo(self) -> None:
        """Nobody worked in it. Not `prune`, which forgets every worktree that is not mounted now."""
        shutil.rmtree(self.plan.path, ignore_errors=True)
        with self._turn():
            self._ask(self.plan.repository, ("worktree", "remove", "--force", "--force", str(self.plan.path)), LOOK)

    def _ask(
        self, place: str, words: tuple[str, ...], seconds: float, is_wanted: Callable[[], bool] = lambda: True
    ) -> ProgramResult:
        return _git(self.plan.git, place, words, self._environ, seconds, is_wanted)


def _complaint(answer: ProgramResult) -> str:
    """What git says first about it: advice comes after that."""
    fatal = (line for line in answer.stderr.splitlines() if line.startswith("fatal: "))
    return next(fatal, answer.error_line)[:MAX_ERROR_LINE]


_HOW_TO_LOOK = ("--porcelain", "--untracked-files=normal", "--ignore-submodules=dirty")
"""Not into submodules: their configuration is theirs. Git removes no worktree that has any, so nothing is lost."""


def _git(  # noqa: PLR0913, PLR0917  # all of it is needed
    git: str,
    place: str,
    words: tuple[str, ...],
    environ: Mapping[str, str],
    seconds: float,
    is_wanted: Callable[[], bool] = lambda: True,
) -> ProgramResult:
    own = {name: value for name, value in environ.items() if name not in REPOSITORY_VARIABLES}
    own |= {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
    settings = [word for setting in _SAFE for word in ("-c", setting)]
    return run_program((git, *settings, *words), environ=own, timeout=seconds, cwd=place, is_wanted=is_wanted)
