"""Sample rows of runs."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from ulid import ULID

from agent_mux.service.store.database import Database, checked_url
from agent_mux.service.store.instances import InstanceRow
from agent_mux.service.store.runs import RunRow, RunStore

INSTANCE = str(ULID())


@asynccontextmanager
async def open_store(url: str, instance: str = INSTANCE) -> AsyncIterator[RunStore]:
    """The runs of a database."""
    database = Database(checked_url(url, Path("unused")))
    await database.open()
    try:
        own = InstanceRow(database, instance)
        await own.take()
        yield RunStore(own)
    finally:
        await database.close()


def row(number: int = 0, **values: Any) -> RunRow:
    """The later ones have higher numbers."""
    return RunRow(**{"run_id": str(ULID()), "created_at": 1_000 + number, "agent": "scripted", **values})


def ended(number: int, size: int | None = 100, **values: Any) -> RunRow:
    """A run that is over, in the order of the numbers."""
    return row(number, state="completed", ended_at=2_000 + number, journal_bytes=size, **values)
