"""Writes what changed in runs into the database, behind the runs: a database that is away stops none of them.

Changes of one run are merged while they wait. What could not be written when the server is killed is found again in the
journals: see `recovery.py`.
"""

import logging
from collections.abc import Iterable, Mapping
from typing import Any

import anyio

from agent_mux.errors import AgentMuxError
from agent_mux.service.runs.observers import Entry
from agent_mux.service.store.runs import RunStore
from agent_mux.telemetry.logs import LOGGER

FIRST_DELAY, LONGEST_DELAY = 0.1, 5.0  # seconds between two attempts


class Keeper:
    """What is still to be written."""

    def __init__(self, store: RunStore) -> None:
        self._store = store
        self._waiting: dict[str, dict[str, Any]] = {}
        self._entries: dict[str, list[Entry]] = {}
        self._news = anyio.Event()
        self._done = anyio.Event()
        self._done.set()

    def put(self, run_id: str, values: Mapping[str, Any], entries: Iterable[Entry] = ()) -> None:
        """Write this, soon."""
        self._waiting.setdefault(run_id, {}).update(values)
        self._entries.setdefault(run_id, []).extend(entries)
        if self._done.is_set():
            self._done = anyio.Event()
        self._news.set()

    def forget(self, run_id: str) -> None:
        """Nothing of this run needs to be written any more, but what others are to be told of it."""
        if self._entries.get(run_id):
            self._waiting[run_id] = {}
        else:
            self._waiting.pop(run_id, None)
            self._entries.pop(run_id, None)

    def has(self, run_id: str) -> bool:
        """Something of this run is not written yet."""
        return run_id in self._waiting

    async def flushed(self) -> None:
        """Wait until everything is written."""
        await self._done.wait()

    async def _write(self, run_id: str) -> None:
        values, entries = dict(self._waiting[run_id]), tuple(self._entries.get(run_id, ()))
        await self._store.change(run_id, values, [entry.statement for entry in entries])
        del self._entries.get(run_id, [])[: len(entries)]
        if self._waiting.get(run_id) == values and not self._entries.get(run_id):  # else something new came meanwhile
            del self._waiting[run_id]
            self._entries.pop(run_id, None)
        for entry in entries:
            entry.written()

    async def run(self) -> None:
        """Write, until cancelled."""
        delay = FIRST_DELAY
        while True:
            await self._news.wait()
            self._news = anyio.Event()
            while self._waiting:
                run_id = next(iter(self._waiting))
                try:
                    await self._write(run_id)
                    delay = FIRST_DELAY
                except AgentMuxError as error:
                    logging.getLogger(LOGGER).warning("what became of run %s is not written yet: %s", run_id, error)
                    await anyio.sleep(delay)
                    delay = min(delay * 2, LONGEST_DELAY)
            self._done.set()
