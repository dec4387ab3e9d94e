"""Recovery after a crash: determines from the journals what became of the runs that were alive.

A run that had started has ended: its processes are gone (the reaper killed them, and recovery makes sure), and it is
`lost` unless its agent had finished. A run that was still waiting is queued again.

Processes are killed before the server accepts requests. Journals may be huge, so they are read in the background, one
after the other. A request for such a run waits and, after a while, fails with UNAVAILABLE: no outdated state is shown.
"""

import logging
import shutil
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
from anyio import from_thread, to_thread

from agent_mux._util.logs import LOGGER
from agent_mux._util.sanitize import to_json
from agent_mux.errors import AgentMuxError
from agent_mux.process.marker import kill_processes_of, processes_of
from agent_mux.run.base import state_after
from agent_mux.run.derivation import CodecFactory, DerivedRun
from agent_mux.run.environment import temp_dir_of
from agent_mux.run.ledger import Ledger
from agent_mux.run.result import RunError, RunResult
from agent_mux.service.clock import now_ms
from agent_mux.service.owner import Life, Owner
from agent_mux.service.runs.live import OutboxEntry, RunLifecycleObserver, collect_entries, ended_values, view_of
from agent_mux.service.runs.write_behind import WriteBehindQueue
from agent_mux.service.store.runs import RunRow

RECOVERY_TIMEOUT = 5.0  # seconds that a request waits for a journal to be read

RecoverValues = Callable[[], Mapping[str, Any]]
"""Determine the columns of a run that was alive. Blocking."""
RestartRun = Callable[[RunRow], Awaitable[None]]
"""Start a run that was waiting. Raises `AgentMuxError`."""


class Recovery:
    """The runs that were alive when the server was killed, until their outcome is determined."""

    def __init__(
        self,
        journals: Path,
        make_codec: CodecFactory,
        write_queue: WriteBehindQueue,
        observers: Sequence[RunLifecycleObserver] = (),
        owner: Owner | None = None,
    ) -> None:
        """Recover nothing yet.

        Args:
            journals: The directory of the journals.
            make_codec: Makes the codec of each journal.
            write_queue: Writes the outcomes.
            observers: Notified of the end of each recovered run.
            owner: This server. What a server elsewhere owns is not touched unless that server is dead.
        """
        self._owner = owner
        self._observers = observers
        self._journals = journals
        self._make_codec = make_codec
        self._write_queue = write_queue
        self._unrecovered: dict[str, tuple[RunRow, RecoverValues]] = {}
        self._recovered = anyio.Event()
        self.finished = anyio.Event()
        """Set when the outcome of every run is stored."""

    async def begin(self, rows: Sequence[RunRow], restart: RestartRun) -> None:
        """Clean up after the runs, and start again in order those that were waiting."""
        for row in await to_thread.run_sync(self._classify, rows):
            try:
                await restart(row)
            except AgentMuxError as error:
                self._mark_lost(
                    row, f"the server was stopped while the run was queued, and it cannot be started again: {error}"
                )

    def _classify(self, rows: Sequence[RunRow]) -> list[RunRow]:
        """Return the runs that had not started, of which only the request exists; keep the others for `run`."""
        waiting = []
        for row in rows:
            journal = self._journals / f"{row.run_id}.journal"
            if journal.exists() and not (row.state == "spawned" and _is_empty(journal)):
                self._add(row, lambda row=row, journal=journal: recovered_values(row, journal, self._make_codec))  # type: ignore[misc]
            elif self._is_elsewhere(row) and processes_of(row.run_id):
                self._mark_lost(row, "another server with the same instance id has started it")
            elif row.state != "spawned":
                self._mark_lost(row, f"the server was killed, and its journal {journal} is missing")
            elif row.is_complete:
                journal.unlink(missing_ok=True)
                waiting.append(row)
            else:
                reason = "the server was killed while the run was queued, and secrets of the request are not stored"
                self._mark_lost(row, f"{reason}; start it again")
        return waiting

    def _add(self, row: RunRow, recover: RecoverValues) -> None:
        if not self._may_be_alive(row):
            _clean_up(row.run_id)
        self._unrecovered[row.run_id] = row, recover

    def _is_elsewhere(self, row: RunRow) -> bool:
        """Return whether a server of another directory has claimed the run."""
        claimed_by = Owner.decode(row.claimed_by)
        return claimed_by is not None and self._owner is not None and not claimed_by.place.is_same(self._owner.place)

    def _may_be_alive(self, row: RunRow) -> bool:
        """Return whether the server that has claimed the run may be at work on it."""
        claimed_by = Owner.decode(row.claimed_by)
        if claimed_by is None or self._owner is None:
            return False
        return claimed_by.life_for(self._owner) is not Life.DEAD

    def _mark_lost(self, row: RunRow, reason: str) -> None:
        """End a run that left no journal and cannot start. `reason`: the message of its error."""
        self._add(row, lambda: lost_values(row, reason))

    async def run(self) -> None:
        """Recover the runs one after the other and store their outcomes."""
        for run_id, (row, recover) in list(self._unrecovered.items()):
            values = await to_thread.run_sync(_recover, run_id, recover)
            self._write_queue.put(run_id, values, self._entries(row, values))
            await self._write_queue.flush()
            del self._unrecovered[run_id]
            news, self._recovered = self._recovered, anyio.Event()
            news.set()
        self.finished.set()

    def _entries(self, row: RunRow, values: Mapping[str, Any]) -> list[OutboxEntry]:
        for name, value in values.items():
            setattr(row, name, value)
        view = view_of(row, full=False)
        return collect_entries(self._observers, lambda observer: observer.ended(row, view, {}))

    async def wait_recovered(self, *run_ids: str) -> bool:
        """Wait until these runs are recovered; return whether it had to wait. Raises UNAVAILABLE when it takes long."""
        if not any(run_id in self._unrecovered for run_id in run_ids):
            return False
        with anyio.move_on_after(RECOVERY_TIMEOUT):
            while any(run_id in self._unrecovered for run_id in run_ids):
                await self._recovered.wait()
            return True
        reading = (
            f"the server was killed; the outcomes of {len(self._unrecovered)} runs are being read from their journals"
        )
        raise AgentMuxError("UNAVAILABLE", f"{reading}; try again")


def _recover(run_id: str, recover: RecoverValues) -> Mapping[str, Any]:
    try:
        return recover()
    except Exception:  # an adapter's codec may raise anything, which must not keep the server from starting
        logging.getLogger(LOGGER).exception("cannot recover run %s from its journal", run_id)
        return {"state": "lost", "exit_reason": "lost", "ended_at": now_ms(), "error_code": "INTERNAL"}


def _is_empty(journal: Path) -> bool:
    """Return whether nothing was written to the journal, so that no agent was started."""
    return journal.stat().st_size == 0


def _clean_up(run_id: str) -> None:
    """Kill what is left of a run: its reaper may have been killed, too."""
    kill_processes_of(run_id)
    shutil.rmtree(temp_dir_of(run_id), ignore_errors=True)


def recovered_values(
    row: RunRow,
    journal: Path,
    make_codec: CodecFactory,
    explain_loss: Callable[[RunResult], RunResult] = lambda result: result,
) -> dict[str, Any]:
    """Return the columns of a run that was alive when the server was killed. Blocking: reads the whole journal.

    `explain_loss`: changes the result of a run that is `lost`.
    """
    try:
        derived = DerivedRun(journal, make_codec)
        if derived.run_id == row.run_id:
            return _derived_values(derived, journal, explain_loss)
        reason = f"{journal} belongs to another run"
    except (AgentMuxError, OSError) as error:
        reason = str(error)
    return lost_values(row, f"the server was killed, and its journal cannot be read: {reason}")


def _derived_values(
    derived: DerivedRun, journal: Path, explain_loss: Callable[[RunResult], RunResult]
) -> dict[str, Any]:
    types: Counter[str] = Counter()
    for _, events in derived.batches():
        from_thread.check_cancelled()  # the service may be stopping
        types.update(event.type for event in events)
    result = derived.result()
    result = explain_loss(result) if result.exit_reason == "lost" else result
    if derived.damage is not None:
        logging.getLogger(LOGGER).error("the events of run %s end early: %s", derived.run_id, derived.damage)
        error = RunError("RUN_LOST", f"the server was killed, and later events are lost: {derived.damage}")
        result = replace(result, error=error)
    started_at = derived.header.started_at
    return {
        **ended_values(result),
        "state": state_after(result.exit_reason),
        "started_at": started_at,
        "ended_at": started_at + result.duration_ms,
        "event_count": derived.event_count,
        "event_types": to_json(types),
        "journal_bytes": journal.stat().st_size,
    }


def lost_values(row: RunRow, reason: str) -> dict[str, Any]:
    """Return the columns of a run without a journal. `reason`: the message of its error."""
    result = RunResult(
        run_id=row.run_id,
        agent=row.agent,
        model=row.model,
        session_id=row.session_id,
        exit_reason="lost",
        exit_code=None,
        signal=None,
        duration_ms=0,
        turn_count=0,
        cost=None,
        token_usage=None,
        error=RunError("RUN_LOST", reason),
        ledger=Ledger(),
        tags=row.tags,
    )
    return {**ended_values(result), "state": "lost", "ended_at": now_ms(), "event_count": 0, "event_types": "{}"}
