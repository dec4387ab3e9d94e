"""The worktrees that runs left behind: what changed in them, taking their changes over, and removing them."""

import contextlib
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from agent_mux._util.files import make_directory
from agent_mux.errors import AgentMuxError
from agent_mux.worktrees.applying import apply_patch
from agent_mux.worktrees.git import FileDifference, git_error, run_git
from agent_mux.worktrees.records import RecordDirectory, WorktreeRecord
from agent_mux.worktrees.removal import remove_directory
from agent_mux.worktrees.repositories import GitDirectories
from agent_mux.worktrees.snapshots import WorkingTreeSnapshots
from agent_mux.worktrees.worktree import worktree_lock

TIMEOUT = 120.0  # seconds for a call of git
PATCHES = "worktree-patches"
"""The directory with the patches of removed worktrees, beside the one with the worktrees."""
MAX_PATCH = 1 << 28  # bytes
_WAIT = "wait for its end, or abort it"


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptWorktree:
    """A worktree that a run left behind, or that it uses now."""

    run_id: str
    """ULID of the run."""
    path: str
    """Absolute path of the worktree."""
    repository: str
    """Top of the working tree from which it was made, or the directory that was copied; empty if that is not known."""
    base_commit: str | None
    """None for a copy of a directory without a repository, and if it is not known."""
    created_at: int
    """Milliseconds since the epoch."""
    is_in_use: bool
    """Whether its run goes on."""
    changes: tuple[FileDifference, ...] = ()
    """What differs from its start."""
    problem: str | None = None
    """Why its changes are not known; None if they are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AppliedChanges:
    """The changes of a worktree that were made in its repository."""

    run_id: str
    """ULID of the run."""
    repository: str
    """Path of the repository into which the changes were written."""
    files: tuple[str, ...]
    """The changed files, relative to the repository."""
    is_merged: bool
    """Whether a three-way merge was needed because the repository has changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovedWorktree:
    """A worktree that was removed."""

    run_id: str
    """ULID of the run."""
    patch: str | None
    """File with its changes, which `git apply` reproduces; None if it had none."""


class KeptWorktrees:
    """The worktrees of runs on this machine. All methods block."""

    def __init__(self, config_dir: Path, environ: Mapping[str, str] | None = None) -> None:
        """Name their place; nothing is read. `environ`: environment of git; default: that of this process."""
        self._directory = config_dir / "worktrees"
        self._patches = config_dir / PATCHES
        self._environ = dict(os.environ if environ is None else environ)

    def list(self) -> list[KeptWorktree]:
        """Return the worktrees, oldest first, with their changes."""
        try:
            names = sorted(entry.name for entry in os.scandir(self._directory) if entry.is_dir(follow_symlinks=False))
        except FileNotFoundError:
            return []
        except OSError as error:
            why = f"{self._directory} cannot be read: {error.strerror or error}"
            raise AgentMuxError("CONFIG_ERROR", why) from error
        return [self._describe(name) for name in names]

    def get(self, run_id: str) -> KeptWorktree:
        """Return the worktree of a run, whose id may be abbreviated. Raises `AgentMuxError` (NOT_FOUND)."""
        return self._describe(self._find(run_id))

    def patch(self, run_id: str) -> bytes:
        """Return the changes since its start as a patch, which `git apply` reproduces byte for byte.

        Raises:
            AgentMuxError: NOT_FOUND without such a worktree; CONFIG_ERROR if it cannot be compared.
        """
        name = self._find(run_id)
        target = RecordDirectory(self._directory / name).path / "changes.patch"
        try:
            self._write_patch(name, target)
            if target.stat().st_size > MAX_PATCH:
                raise AgentMuxError("CONFIG_ERROR", f"the changes of worktree {name} are larger than {MAX_PATCH} bytes")
            return target.read_bytes()
        finally:
            target.unlink(missing_ok=True)

    def apply(self, run_id: str) -> AppliedChanges:
        """Make the changes of a worktree in its repository, uncommitted; by a three-way merge if they do not fit.

        The worktree stays.

        Raises:
            AgentMuxError: NOT_FOUND; CONFIG_ERROR if it cannot be compared; INVALID_STATE_TRANSITION if its run goes
                on, or if the merge has conflicts, in which case nothing is changed.
        """
        name = self._find(run_id)
        records, record = self._records_of(name)
        if records.is_in_use():
            raise AgentMuxError("INVALID_STATE_TRANSITION", f"run {name} still works in its worktree; {_WAIT}")
        if not Path(record.repository).is_dir():
            why = f"{record.repository} no longer exists; its changes as a patch: amux worktrees diff {name}"
            raise AgentMuxError("CONFIG_ERROR", why)
        files = tuple(change.path for change in self._describe(name).changes)
        if not files:
            return AppliedChanges(run_id=name, repository=record.repository, files=(), is_merged=False)
        target = records.path / "changes.patch"
        try:
            self._write_patch(name, target)
            is_merged = self._apply_patch(record, target)
        finally:
            target.unlink(missing_ok=True)
        return AppliedChanges(run_id=name, repository=record.repository, files=files, is_merged=is_merged)

    def _apply_patch(self, record: WorktreeRecord, patch: Path) -> bool:
        """Apply a patch to the repository. Returns whether it had to be merged."""
        # The blobs of the first state may be among our objects only.
        objects = RecordDirectory(self._directory / record.run_id).store(record) / "objects"
        try:
            return apply_patch(Path(record.repository), patch, objects, self._environ)
        except AgentMuxError as error:
            if error.code != "INVALID_STATE_TRANSITION":
                raise
            why = f"the changes of worktree {record.run_id} do not fit {record.repository}: {error.message}"
            next_step = f"merge them by hand: amux worktrees diff {record.run_id}"
            raise AgentMuxError("INVALID_STATE_TRANSITION", f"{why}; {next_step}") from error

    def clean(self, run_id: str, *, keep_patch: bool = True) -> RemovedWorktree:
        """Remove a worktree; its changes are kept as a patch.

        Args:
            run_id: The id of its run, or the beginning of it.
            keep_patch: Whether to keep the changes in a file.

        Raises:
            AgentMuxError: NOT_FOUND; INVALID_STATE_TRANSITION if its run goes on; CONFIG_ERROR if it cannot be removed,
                or if its changes are to be kept and cannot be compared.
        """
        name = self._find(run_id)
        path = self._directory / name
        records = RecordDirectory(path)
        if records.is_in_use():
            raise AgentMuxError("INVALID_STATE_TRANSITION", f"run {name} still works in its worktree; {_WAIT}")
        patch = self._keep_patch(name) if keep_patch else None
        record = records.read()
        if record is not None:
            self._forget(record, path)
        remove_directory(path)
        records.remove()
        return RemovedWorktree(run_id=name, patch=None if patch is None else str(patch))

    def _keep_patch(self, name: str) -> Path | None:
        described = self._describe(name)
        if described.problem is not None:
            why = f"the changes of worktree {name} cannot be kept: {described.problem}"
            raise AgentMuxError("CONFIG_ERROR", f"{why}; to remove it with its changes: --no-patch")
        if not described.changes:
            return None
        make_directory(self._patches)
        target = self._patches / f"{name}.patch"
        self._write_patch(name, target)
        return target

    def _forget(self, record: WorktreeRecord, path: Path) -> None:
        """Remove a worktree from its repository, if that still exists."""
        if record.base is None or not Path(record.repository).is_dir():
            return
        with worktree_lock(self._directory, record.common), contextlib.suppress(AgentMuxError):
            self._git(record.repository, ("worktree", "remove", "--force", "--force", str(path)))

    def _describe(self, name: str) -> KeptWorktree:
        path = self._directory / name
        records = RecordDirectory(path)
        try:
            record = records.read()
            problem = None if record is not None else "nothing is recorded about its start"
        except AgentMuxError as error:
            record, problem = None, str(error)
        changes: tuple[FileDifference, ...] = ()
        if record is not None:
            try:
                snapshots = self._snapshots(name, record)
                changes = tuple(snapshots.differences(record.start, snapshots.take()))
            except (AgentMuxError, OSError) as error:
                problem = str(error)
        return KeptWorktree(
            run_id=name,
            path=str(path),
            repository="" if record is None else record.repository,
            base_commit=None if record is None else record.base,
            created_at=int(path.stat().st_ctime * 1000) if record is None else record.created_at,
            is_in_use=records.is_in_use(),
            changes=changes,
            problem=problem,
        )

    def _records_of(self, name: str) -> tuple[RecordDirectory, WorktreeRecord]:
        records = RecordDirectory(self._directory / name)
        record = records.read()
        if record is None:
            raise AgentMuxError("CONFIG_ERROR", f"nothing is recorded about the start of worktree {name}")
        return records, record

    def _snapshots(self, name: str, record: WorktreeRecord) -> WorkingTreeSnapshots:
        if not record.start:
            raise AgentMuxError("CONFIG_ERROR", "its first state could not be determined when it was created")
        if not Path(record.git_directory).is_dir():
            raise AgentMuxError("CONFIG_ERROR", f"its repository {record.repository} no longer has it")
        path = self._directory / name
        found = GitDirectories(path, Path(record.git_directory), Path(record.common))
        store = RecordDirectory(path).store(record)
        return WorkingTreeSnapshots(self._git_program(), found, store, self._environ, TIMEOUT, is_pinned=True)

    def _write_patch(self, name: str, target: Path) -> None:
        _, record = self._records_of(name)
        snapshots = self._snapshots(name, record)
        snapshots.write_patch(record.start, snapshots.take(), target)

    def _find(self, run_id: str) -> str:
        try:
            names = sorted(entry.name for entry in os.scandir(self._directory))
        except OSError:
            names = []
        found = [name for name in names if run_id and name.startswith(run_id.upper())]
        if run_id.upper() in found:
            return run_id.upper()
        if len(found) == 1:
            return found[0]
        if found:
            raise AgentMuxError("NOT_FOUND", f"{run_id} stands for {len(found)} worktrees: {', '.join(found[:5])}")
        raise AgentMuxError("NOT_FOUND", f"no worktree of run {run_id!r} is kept; amux worktrees list shows all")

    def _git(self, directory: str, words: tuple[str, ...], added: Mapping[str, str] | None = None) -> str | None:
        """Run git. Returns its error; None if it succeeded."""
        answer = run_git(
            self._git_program(), directory, words, environ=self._environ, timeout=TIMEOUT, added=added or {}
        )
        return None if answer.exit_code == 0 else git_error(answer)

    def _git_program(self) -> str:
        git = shutil.which("git", path=self._environ.get("PATH", os.defpath))
        if git is None:
            raise AgentMuxError("CONFIG_ERROR", "git is not on PATH; install it")
        return git
