"""Which recordings `AgentMux.runs.prune` deletes. Recordings of active runs are never deleted."""

import time
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

import msgspec

from agent_mux._util.files import remove
from agent_mux.journal.file import is_being_written
from agent_mux.sdk.checked import Checked


class PrunedRun(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The recording of a run that is to be deleted, or was deleted."""

    run_id: str
    """ULID of the run."""
    path: str
    """Path of its recording."""
    bytes: int
    """Size of the recording in bytes."""
    ended_at: int
    """Time of the last record: milliseconds since the epoch."""


class PruneLimits(Checked, msgspec.Struct, frozen=True, kw_only=True):
    """What is kept. None: no limit."""

    older_than: float | None = None
    """Seconds since the last record."""
    keep: int | None = None
    max_bytes: int | None = None


def prunable(journals: Iterable[Path], active: Collection[str], limits: PruneLimits) -> list[PrunedRun]:
    """Return the recordings beyond the limits, oldest first."""
    runs: list[PrunedRun] = []
    for path in journals:
        try:
            status = path.stat()
        except FileNotFoundError:  # deleted meanwhile
            continue
        if path.stem not in active and not is_being_written(path):
            ended_at = int(status.st_mtime * 1000)
            runs.append(PrunedRun(run_id=path.stem, path=str(path), bytes=status.st_size, ended_at=ended_at))
    runs.sort(key=lambda run: (run.ended_at, run.run_id))
    beyond = _beyond(runs, limits)
    return [run for run in runs if run.run_id in beyond]


def _beyond(runs: Sequence[PrunedRun], limits: PruneLimits) -> set[str]:
    chosen: set[str] = set()
    oldest = (time.time() - limits.older_than) * 1000 if limits.older_than is not None else None
    kept = total = 0
    for run in reversed(runs):
        total += run.bytes
        is_old = oldest is not None and run.ended_at < oldest
        is_many = limits.keep is not None and kept >= limits.keep
        is_large = limits.max_bytes is not None and total > limits.max_bytes
        if is_old or is_many or is_large:
            chosen.add(run.run_id)
        else:
            kept += 1
    return chosen


def prune(runs: Iterable[PrunedRun]) -> list[PrunedRun]:
    """Delete recordings and return those that were deleted. Raises CONFIG_ERROR where the disk refuses."""
    deleted = []
    for run in runs:
        remove(Path(run.path))
        deleted.append(run)
    return deleted
