"""Many requests that write at once: each waits for its turn, and none is refused."""

from pathlib import Path

import anyio
import pytest
from ulid import ULID

from agent_mux.service.store.database import Database, checked_url
from agent_mux.service.store.instances import InstanceRow
from agent_mux.service.store.runs import RunFilter, RunRow, RunStore

pytestmark = pytest.mark.anyio
WRITERS = 100


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def test_many_concurrent_writers_wait_for_each_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent_mux.service.store.database.BUSY_TIMEOUT", 1)  # ms that SQLite waits for another writer
    database = Database(checked_url(None, tmp_path / "service.db"))
    with anyio.fail_after(60):
        await database.open()
        own = InstanceRow(database, str(ULID()))
        await own.take()
        store = RunStore(own)
        async with anyio.create_task_group() as tasks:
            for number in range(WRITERS):
                row = RunRow(run_id=str(ULID()), created_at=number, agent="a", result="long", request='{"x":1}')
                tasks.start_soon(store.add, row)
        listed = await store.page(RunFilter(), limit=1000)
        await database.close()
    assert len(listed) == WRITERS
    assert {row.result for row in listed} == {None}
    assert {row.request for row in listed} == {"{}"}
