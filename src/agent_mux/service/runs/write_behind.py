"""Writes what changed in runs into the database, behind the runs: a database that is away stops none of them.

Changes of one run are merged while they wait; what waits is written together. What could not be written when the server
is killed is found again in the journals: see `recovery.py`.
"""

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import anyio

from agent_mux._util.logs import LOGGER
from agent_mux.errors import AgentMuxError
from agent_mux.service.runs.live import OutboxEntry
from agent_mux.service.store.runs import RowChange, RunStore

FIRST_DELAY, LONGEST_DELAY = 0.1, 2.0  # seconds between two attempts
BATCH_SIZE = 100  # runs that are written in one transaction
RowValues = dict[str, Any] | None
"""Columns of a run; None: it is to be removed."""


@dataclass(slots=True, eq=False)
class _Change:
    number: int
    """In the order of coming."""
    values: RowValues
    entries: list[OutboxEntry] = field(default_factory=list)
    """What others are told of it: written with it, or not at all."""

    def as_row(self) -> RowChange:
        """For the store."""
        return RowChange(self.values, [entry.statement for entry in self.entries])


class WriteBehindQueue:
    """What is still to be written, the oldest first."""

    def __init__(self, store: RunStore) -> None:
        self._store = store
        self._pending: dict[str, _Change] = {}
        self._writing: dict[str, _Change] = {}
        """Taken from those that wait, until the database has them."""
        self._number = 0
        self._added = anyio.Event()
        self._written = anyio.Event()
        """Set when something was written; the next time has another."""

    def put(self, run_id: str, values: Mapping[str, Any], entries: Iterable[OutboxEntry] = ()) -> None:
        """Write this, soon."""
        change = self._change(run_id)
        change.entries.extend(entries)
        if change.values is not None:
            change.values.update(values)

    def remove(self, run_id: str) -> None:
        """Remove this run, soon: it never was one."""
        change = self._change(run_id)
        change.values, change.entries = None, []

    def _change(self, run_id: str) -> _Change:
        self._number += 1
        self._added.set()
        return self._pending.setdefault(run_id, _Change(self._number, {}))

    def discard(self, run_id: str) -> None:
        """Nothing of this run needs to be written any more, but what others are to be told of it."""
        for changes in (self._pending, self._writing):
            change = changes.pop(run_id, None)
            if change is not None and change.entries:
                changes[run_id] = _Change(change.number, {}, change.entries)
        self._notify_written()

    def has(self, run_id: str) -> bool:
        """Something of this run is not written yet."""
        return run_id in self._pending or run_id in self._writing

    def is_removing(self, run_id: str) -> bool:
        """This run never was one, and its row may still be there."""
        changes = (self._pending.get(run_id), self._writing.get(run_id))
        return any(change is not None and change.values is None for change in changes)

    @property
    def has_removals(self) -> bool:
        """Rows of runs that never were may still be there."""
        return any(change.values is None for change in (*self._pending.values(), *self._writing.values()))

    async def flush(self) -> None:
        """Wait until everything is written that was to be written when this was called."""
        last = self._number
        while any(change.number <= last for change in (*self._writing.values(), *islice(self._pending.values(), 1))):
            await self._written.wait()

    async def run(self) -> None:
        """Write, until cancelled."""
        delay = FIRST_DELAY
        while True:
            await self._added.wait()
            self._added = anyio.Event()
            while self._pending:
                try:
                    await self._write_some()
                except AgentMuxError as error:
                    logging.getLogger(LOGGER).warning("%d runs are not written yet: %s", len(self._pending), error)
                except Exception:  # whatever the driver raises: the service goes on, and tries again
                    logging.getLogger(LOGGER).exception("%d runs are not written yet", len(self._pending))
                else:
                    delay = FIRST_DELAY
                    continue
                await anyio.sleep(delay)
                delay = min(delay * 2, LONGEST_DELAY)

    async def _write_some(self) -> None:
        self._writing = dict(islice(self._pending.items(), BATCH_SIZE))
        for run_id in self._writing:
            del self._pending[run_id]
        changes = dict(self._writing)
        try:
            await self._write(changes)
        except BaseException:
            self._requeue()
            raise
        self._writing = {}
        self._notify_written()

    async def _write(self, changes: dict[str, _Change]) -> None:
        try:
            await self._write_together(changes)
        except AgentMuxError as error:
            if error.code == "UNAVAILABLE":
                raise
            await self._write_one_by_one(changes)

    async def _write_together(self, changes: dict[str, _Change]) -> None:
        entries = [entry for change in changes.values() for entry in change.entries]
        await self._store.write({run_id: change.as_row() for run_id, change in changes.items()})
        for entry in entries:
            entry.written()

    async def _write_one_by_one(self, changes: dict[str, _Change]) -> None:
        """The database refuses one of them for good: that costs this one, and no other."""
        for run_id, change in changes.items():
            try:
                await self._write_together({run_id: change})
            except AgentMuxError as error:
                if error.code == "UNAVAILABLE":
                    raise
                logging.getLogger(LOGGER).exception("what became of run %s cannot be written", run_id)

    def _requeue(self) -> None:
        """They wait again, before the others, with what came meanwhile."""
        again, self._writing = self._writing, {}
        for run_id, change in again.items():
            newer = self._pending.pop(run_id, None)
            if newer is not None:
                is_removed = change.values is None or newer.values is None
                change.values = None if is_removed else {**(change.values or {}), **(newer.values or {})}
                change.entries = [] if is_removed else change.entries + newer.entries
        self._pending = {**again, **self._pending}

    def _notify_written(self) -> None:
        written, self._written = self._written, anyio.Event()
        written.set()
