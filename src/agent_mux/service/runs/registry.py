"""Which runs exist: those whose handles this process has, and those that are only stored.

A run is live until its outcome is recorded. Its handle stays in memory for a while after that, since most readers come
while a run is new.
"""

import logging
from collections import OrderedDict
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, Protocol

import anyio
import sqlalchemy as sa
from anyio import to_thread

from agent_mux._util.logs import LOGGER
from agent_mux.errors import AgentMuxError
from agent_mux.run.base import TERMINAL_STATES
from agent_mux.service.audit.trail import Recording, unrecorded
from agent_mux.service.runs.live import LiveRun, OutboxEntry, view_of
from agent_mux.service.runs.locks import KeyedLocks
from agent_mux.service.runs.write_behind import WriteBehindQueue
from agent_mux.service.store.runs import RunFilter, RunPosition, RunRow, RunStore
from agent_mux.service.views import RunView

MAX_RECENT_RUNS = 64
"""Ended runs whose handles stay in memory with their latest events."""
MAX_RECENT_BYTES = 32 << 20
"""Bytes of events of ended runs in memory; then fewer handles stay, at least that of the last run."""
CLAIM_INTERVAL = 1.0  # seconds between two attempts to claim a run while the database is unavailable
FLUSH_TIMEOUT = 5.0  # seconds to wait for an unavailable database
WRITE_WAIT = 1.0  # seconds that a listing waits for recent changes to be written


class WaitRecovered(Protocol):
    """Waits for the outcomes of runs of a killed server; see `Recovery.wait_recovered`."""

    def __call__(self, *run_ids: str) -> Awaitable[bool]:
        """Return whether it had to wait. Raises UNAVAILABLE when it takes long."""


class RunRegistry:
    """Every run of this instance, live or stored."""

    def __init__(
        self, store: RunStore, write_queue: WriteBehindQueue, journals: Path, wait_recovered: WaitRecovered
    ) -> None:
        """`journals`: the directory of the journals."""
        self._store = store
        self._write_queue = write_queue
        self._journals = journals
        self._wait_recovered = wait_recovered
        self._locks = KeyedLocks()
        self._live: dict[str, LiveRun] = {}
        self._recent: OrderedDict[str, LiveRun] = OrderedDict()
        self._released = anyio.Event()
        """Set when a run is no longer live, and then replaced."""

    # -- live runs

    def hold(self, run_id: str) -> AbstractAsyncContextManager[None]:
        """Keep requests for a run waiting while it is created."""
        return self._locks.hold(run_id)

    def add(self, live: LiveRun) -> None:
        """Add a run that was started."""
        self._live[live.row.run_id] = live

    def release(self, live: LiveRun, *, is_recorded: bool) -> None:
        """End the life of a run. `is_recorded`: its handle stays for readers, since it has a result."""
        run_id = live.row.run_id
        del self._live[run_id]
        if is_recorded:
            self._recent[run_id] = live
        while self._has_surplus() and not self._write_queue.has(next(iter(self._recent))):
            self._recent.popitem(last=False)
        released, self._released = self._released, anyio.Event()
        released.set()

    def _has_surplus(self) -> bool:
        size = sum(live.handle.event_bytes for live in self._recent.values())
        return len(self._recent) > MAX_RECENT_RUNS or (size > MAX_RECENT_BYTES and len(self._recent) > 1)

    @property
    def alive(self) -> list[LiveRun]:
        """Runs that have not ended."""
        return list(self._live.values())

    async def wait_released(self, *run_ids: str) -> None:
        """Wait until these runs are no longer live, so that their outcomes are recorded."""
        while not self._live.keys().isdisjoint(run_ids):
            await self._released.wait()

    def find(self, run_id: str) -> LiveRun | None:
        """Return the run if this process has its handle: it is alive or ended recently."""
        return self._live.get(run_id) or self._recent.get(run_id)

    async def find_created(self, run_id: str) -> LiveRun | None:
        """Return the same, after waiting for a run that is being created, deleted or recovered."""
        live = self.find(run_id)
        if live is None:
            async with self._locks.hold(run_id):
                live = self.find(run_id)
            await self._wait_recovered(run_id)
        return live

    async def active(self, run_id: str) -> LiveRun:
        """Return a run that takes commands. Raises RUN_NOT_FOUND and RUN_NOT_ACTIVE."""
        live = await self.find_created(run_id)
        if live is None:
            row = await self.row_of(run_id)
            raise AgentMuxError("RUN_NOT_ACTIVE", f"run {run_id} has ended ({row.state}); start a new one")
        return live

    # -- views

    async def get(self, run_id: str, *, full: bool = True) -> RunView:
        """Return one run. `full`: with its request and result, which may be long. Raises RUN_NOT_FOUND."""
        live = await self.find_created(run_id)
        if live is not None:
            await self._wait_recorded(live)
            return live.view(full=full)
        return view_of(await self.row_of(run_id), full=full)

    async def page(
        self, run_filter: RunFilter, *, after_position: RunPosition | None = None, limit: int
    ) -> list[RunView]:
        """Return up to `limit` runs that match the filter, latest first."""
        if run_filter.depends_on_state or self._write_queue.has_removals:
            with anyio.move_on_after(WRITE_WAIT):
                await self._write_queue.flush()
        rows = await self._store.page(run_filter, after_position=after_position, limit=limit)
        if await self._wait_recovered(*(row.run_id for row in rows)):
            rows = await self._store.page(run_filter, after_position=after_position, limit=limit)
        return [await self._view(row) for row in rows if not self._write_queue.is_removing(row.run_id)]

    async def _view(self, row: RunRow) -> RunView:
        live = self.find(row.run_id)
        if live is None:
            return view_of(row, full=False)
        await self._wait_recorded(live)
        return live.view(full=False)

    async def _wait_recorded(self, live: LiveRun) -> None:
        """Wait for the outcome of a run that has just ended: its end and its exit reason become visible together."""
        if live.handle.state in TERMINAL_STATES:
            await self.wait_released(live.row.run_id)

    async def row_of(self, run_id: str) -> RunRow:
        """Return the row of a stored run. Raises RUN_NOT_FOUND."""
        is_none = self._write_queue.is_removing(run_id)  # before the query: the removal may complete during it
        row = await self._store.get(run_id)
        if row is None or is_none:
            message = f"no run {run_id}; list runs with GET /v1/runs (`amux runs list --server URL`)"
            raise AgentMuxError("RUN_NOT_FOUND", message)
        return row

    async def stored_result(self, run_id: str) -> bytes | None:
        """Return the stored `run_result`; None for a deleted run and for one without a result."""
        row = await self._store.get(run_id)
        return None if row is None or row.result is None else row.result.encode()

    # -- rows

    async def insert(self, row: RunRow, *statements: sa.Executable) -> bool:
        """Insert the row of a new run. Returns False if another run has its id.

        `statements`: executed in the same transaction.
        """
        try:
            return await self._store.add(row, *statements)
        except BaseException:  # the request fails, and whether the row exists is unknown
            self._write_queue.remove(row.run_id)
            raise

    async def take_over(self, run_id: str) -> bool:
        """Claim a waiting run that a server before this one left. Raises UNAVAILABLE."""
        return await self._store.claim(run_id, is_known=False)

    async def claim(self, run_id: str) -> bool:
        """Claim the start of a run immediately before it; False: it must not start here.

        Without the database, a run that this server owned a moment ago starts nevertheless; later ones wait.
        """
        while True:
            try:
                return await self._store.claim(run_id)
            except AgentMuxError as error:
                if self._store.is_taken_over:
                    return False
                if self._store.is_lease_valid and error.recoverable:
                    return True
                logging.getLogger(LOGGER).warning("run %s waits, since it cannot be claimed: %s", run_id, error)
            await anyio.sleep(CLAIM_INTERVAL)

    async def discard(self, run_id: str) -> None:
        """Remove the row of a run that could not be started."""
        self._write_queue.remove(run_id)
        with anyio.CancelScope(shield=True):
            await self.flush()

    async def find_by_key(self, owner: str, key: str) -> RunRow | None:
        """Return the run that a request with this idempotency key created."""
        if self._write_queue.has_removals:  # one of these rows may have this key
            with anyio.CancelScope(shield=True):
                await self.flush()
        row = await self._store.find_by_key(owner, key)
        return None if row is None or self._write_queue.is_removing(row.run_id) else row

    def record(self, run_id: str, values: Mapping[str, Any], entries: Iterable[OutboxEntry] = ()) -> None:
        """Write changes of a run, and entries of observers with them, in the background."""
        self._write_queue.put(run_id, values, entries)

    async def flush(self) -> bool:
        """Wait until all changes are written. Returns False if the database is unavailable for too long."""
        with anyio.move_on_after(FLUSH_TIMEOUT) as scope:
            await self._write_queue.flush()
        return not scope.cancelled_caught

    def journal_of(self, run_id: str) -> Path:
        """Return the path of a run's journal."""
        return self._journals / f"{run_id}.journal"

    # -- deletion

    async def delete(self, run_id: str) -> None:
        """Delete an ended run with its journal. Raises INVALID_STATE_TRANSITION for a live one."""
        await self.find_created(run_id)
        async with self._locks.hold(run_id):
            row = await self.row_of(run_id)
            live = self.find(run_id)
            state = row.state if live is None else live.handle.state
            if run_id in self._live or state not in TERMINAL_STATES:
                raise AgentMuxError("INVALID_STATE_TRANSITION", f"run {run_id} is {state}; abort it first")
            await self._remove([run_id])

    async def delete_many(self, run_ids: Sequence[str], recording: Recording = unrecorded) -> None:
        """Delete ended runs. A run that was deleted meanwhile, and whose id a new run has, is skipped."""
        async with self._locks.hold_all(run_ids):
            ended = [run_id for run_id in run_ids if run_id not in self._live]
            await self._remove(ended, *(statement for run_id in ended for statement in recording(run_id)))

    async def _remove(self, run_ids: Sequence[str], *statements: sa.Executable) -> None:
        """Remove journals, then rows: after a failure the rows remain and the deletion can be repeated.

        Their locks are held: a new run with such an id would lose its first changes.
        """
        await to_thread.run_sync(_delete_journals, [self.journal_of(run_id) for run_id in run_ids])
        await self._store.remove(run_ids, *statements)
        for run_id in run_ids:
            self._write_queue.discard(run_id)
            self._recent.pop(run_id, None)


def _delete_journals(journals: Sequence[Path]) -> None:
    for journal in journals:
        try:
            journal.unlink(missing_ok=True)
        except OSError as error:
            reason = f"cannot remove the journal {journal}: {error.strerror or error}"
            raise AgentMuxError("CONFIG_ERROR", f"{reason}; fix that and delete the run again") from error
