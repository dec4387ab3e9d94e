"""What agent-mux keeps beside a worktree: where it came from, how it began, and whether its run still uses it."""

import contextlib
import fcntl
import json
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

import msgspec

from agent_mux._util.files import make_directory, write_text
from agent_mux.errors import AgentMuxError

RECORDS = "worktree-records"
"""The directory with the records, beside the one with the worktrees."""
_RECORD = "record.json"
_LOCK = "in-use"


class WorktreeRecord(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The origin of a worktree: its repository, run and frozen state."""

    run_id: str
    repository: str
    """Top of the working tree from which it was made, or the directory that was copied."""
    common: str
    """Directory that all worktrees of the repository share."""
    git_directory: str
    """Directory of git for this worktree alone."""
    base: str | None
    """Its first commit; None for a copy of a directory without a repository."""
    start: str
    """Tree object of its first state, with what was carried into it; empty if it could not be determined."""
    created_at: int
    """Milliseconds since the epoch."""
    included: Sequence[str] = ()
    """Ignored files that were copied."""
    shared: Sequence[str] = ()
    """Links to places that it shares with the repository."""


class RecordDirectory:
    """The directory with the record of a worktree, and with the objects of its first state. All methods block."""

    def __init__(self, worktree: Path) -> None:
        """Name the directory; it need not exist."""
        self.path = worktree.parents[1] / RECORDS / worktree.name
        self._lock: int | None = None

    def create(self) -> None:
        """Create the directory and mark the worktree as used. Raises `OSError`."""
        make_directory(self.path)
        self._lock = os.open(self.path / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def release(self) -> None:
        """Mark the worktree as no longer used."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def is_in_use(self) -> bool:
        """Return whether a run uses the worktree."""
        try:
            descriptor = os.open(self.path / _LOCK, os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(descriptor)
        return False

    def write(self, record: WorktreeRecord) -> None:
        """Store the record. Raises `AgentMuxError`."""
        # Not with msgspec, which has no form for names that are no UTF-8.
        write_text(self.path / _RECORD, json.dumps(msgspec.to_builtins(record), indent=1) + "\n")

    def read(self) -> WorktreeRecord | None:
        """Return the record; None if there is none. Raises `AgentMuxError` if it is damaged."""
        path = self.path / _RECORD
        try:
            return msgspec.convert(json.loads(path.read_bytes()), WorktreeRecord)
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise AgentMuxError("INTERNAL", f"{path} cannot be read: {error}; remove {self.path}") from error

    def store(self, record: WorktreeRecord) -> Path:
        """Return the directory with the index and the objects of its snapshots."""
        return self.path if record.base is not None else Path(record.git_directory)

    def remove(self) -> None:
        """Release the lock and remove the directory of the record."""
        self.release()
        with contextlib.suppress(OSError):
            shutil.rmtree(self.path)
