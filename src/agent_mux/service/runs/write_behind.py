"""Writes changes of runs to the database in the background: an unavailable database stops no run.

Pending changes of one run are merged, and pending changes of several runs are written together. Changes that a killed
server had not written are recovered from the journals: see `recovery.py`.
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
BATCH_SIZE = 100  # runs written in one transaction
RowValues = dict[str, Any] | None
"""Columns of a run; None: delete the row."""


@dataclass(slots=True, eq=False)
class _Change:
    number: int
    """Sequence number."""
    values: RowValues
    entries: list[OutboxEntry] = field(default_factory=list)
    """Written in the same transaction."""

    def as_row(self) -> RowChange:
        """Return the change for the store."""
        return RowChange(self.values, [entry.statement for entry in self.entries])


class WriteBehindQueue:
    """Pending changes of runs, the oldest first."""

    def __init__(self, store: RunStore) -> None:
        self._store = store
        self._pending: dict[str, _Change] = {}
        self._writing: dict[str, _Change] = {}
        """Changes taken from `_pending` that are being written."""
        self._number = 0
        self._added = anyio.Event()
        self._written = anyio.Event()
        """Set when something was written, and then replaced."""

    def put(self, run_id: str, values: Mapping[str, Any], entries: Iterable[OutboxEntry] = ()) -> None:
        """Write these columns and entries soon."""
        change = self._change(run_id)
        change.entries.extend(entries)
        if change.values is not None:
            change.values.update(values)

    def remove(self, run_id: str) -> None:
        """Delete the row of a run that did not start."""
        change = self._change(run_id)
        change.values, change.entries = None, []

    def _change(self, run_id: str) -> _Change:
        self._number += 1
        self._added.set()
        return self._pending.setdefault(run_id, _Change(self._number, {}))

    def discard(self, run_id: str) -> None:
        """Drop the changes of a deleted run, but keep its entries."""
        for changes in (self._pending, self._writing):
            change = changes.get(run_id)
            if change is not None and change.entries:  # in its place: `flush` relies on the order
                changes[run_id] = _Change(change.number, {}, change.entries)
            else:
                changes.pop(run_id, None)
        self._notify_written()

    def has(self, run_id: str) -> bool:
        """Return whether changes of this run are unwritten."""
        return run_id in self._pending or run_id in self._writing

    def is_removing(self, run_id: str) -> bool:
        """Return whether the run did not start, so that its row, if it still exists, does not count."""
        changes = (self._pending.get(run_id), self._writing.get(run_id))
        return any(change is not None and change.values is None for change in changes)

    @property
    def has_removals(self) -> bool:
        """Whether rows of runs that did not start may still exist."""
        return any(change.values is None for change in (*self._pending.values(), *self._writing.values()))

    async def flush(self) -> None:
        """Wait until everything is written that was pending at the call."""
        last = self._number
        while any(change.number <= last for change in (*self._writing.values(), *islice(self._pending.values(), 1))):
            await self._written.wait()

    async def run(self) -> None:
        """Write pending changes until cancelled."""
        delay = FIRST_DELAY
        while True:
            await self._added.wait()
            self._added = anyio.Event()
            while self._pending:
                try:
                    await self._write_some()
                except AgentMuxError as error:
                    logging.getLogger(LOGGER).warning(
                        "cannot write the changes of %d runs yet: %s", len(self._pending), error
                    )
                except Exception:  # the driver may raise anything; the service keeps running and retries
                    logging.getLogger(LOGGER).exception("cannot write the changes of %d runs yet", len(self._pending))
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
        """Write each change alone after the database rejected one of them, so that only that one is lost."""
        for run_id, change in changes.items():
            try:
                await self._write_together({run_id: change})
            except AgentMuxError as error:
                if error.code == "UNAVAILABLE":
                    raise
                logging.getLogger(LOGGER).exception("cannot write the changes of run %s", run_id)

    def _requeue(self) -> None:
        """Put unwritten changes in front of the pending ones, merged with newer changes of the same runs."""
        unwritten, self._writing = self._writing, {}
        for run_id, change in unwritten.items():
            newer = self._pending.pop(run_id, None)
            if newer is not None:
                is_removed = change.values is None or newer.values is None
                change.values = None if is_removed else {**(change.values or {}), **(newer.values or {})}
                change.entries = [] if is_removed else change.entries + newer.entries
        self._pending = {**unwritten, **self._pending}

    def _notify_written(self) -> None:
        written, self._written = self._written, anyio.Event()
        written.set()
