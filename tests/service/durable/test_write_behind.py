"""Changes are written behind the runs: once, in order, and not lost while the database is unavailable."""

from collections.abc import Mapping
from typing import Any

import anyio
import pytest
from sqlalchemy import text

from agent_mux.errors import AgentMuxError
from agent_mux.service.runs import write_behind as module
from agent_mux.service.runs.live import OutboxEntry
from agent_mux.service.runs.write_behind import WriteBehindQueue
from agent_mux.service.store.runs import RowChange

pytestmark = pytest.mark.anyio
Changes = Mapping[str, RowChange]


class FakeStore:
    """Rows in memory; unavailable on request; rejects some rows permanently."""

    def __init__(self) -> None:
        self.rows: dict[str, dict[str, Any]] = {}
        self.written: list[dict[str, Any]] = []
        self.is_away = False
        self.error: Exception = AgentMuxError("UNAVAILABLE", "away")
        self.refused: set[str] = set()
        self.hold: anyio.Event | None = None
        self.asked = anyio.Event()

    async def write(self, changes: Changes) -> None:
        copy = {run_id: None if change.values is None else dict(change.values) for run_id, change in changes.items()}
        self.asked.set()
        if self.hold is not None:
            await self.hold.wait()
        if self.is_away:
            raise self.error
        if self.refused & copy.keys():
            raise AgentMuxError("INTERNAL", "refused")
        self.written.append(copy)
        for run_id, values in copy.items():
            if values is None:
                self.rows.pop(run_id, None)
            else:
                self.rows.setdefault(run_id, {}).update(values)


class Kept:
    """A keeper at work."""

    def __init__(self) -> None:
        self.store = FakeStore()
        self.keeper = WriteBehindQueue(self.store)  # type: ignore[arg-type]


@pytest.fixture
async def kept(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(module, "FIRST_DELAY", 0.001)
    monkeypatch.setattr(module, "LONGEST_DELAY", 0.001)
    kept = Kept()
    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(kept.keeper.run)
            yield kept
            tasks.cancel_scope.cancel()


async def test_what_waits_is_written_together_and_merged(kept: Kept) -> None:
    for run_id in ("a", "b"):
        kept.keeper.put(run_id, {"state": "running"})
        kept.keeper.put(run_id, {"state": "completed", "n": 1})
    await kept.keeper.flush()
    merged = {"state": "completed", "n": 1}
    assert kept.store.written == [{"a": merged, "b": merged}]
    assert not kept.keeper.has("a")


async def test_flush_waits_for_the_entries_of_a_deleted_run() -> None:
    keeper, flushed = WriteBehindQueue(FakeStore()), anyio.Event()  # type: ignore[arg-type]  # writes nothing yet

    async def flush() -> None:
        await keeper.flush()
        flushed.set()

    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            keeper.put("a", {"state": "completed"}, [OutboxEntry(text("SELECT 1"), lambda: None)])
            tasks.start_soon(flush)
            await anyio.wait_all_tasks_blocked()
            keeper.put("b", {"state": "running"})
            keeper.discard("a")
            await anyio.wait_all_tasks_blocked()
            assert not flushed.is_set()
            tasks.start_soon(keeper.run)
            await flushed.wait()
            tasks.cancel_scope.cancel()


async def test_flush_returns_at_once_without_pending_changes(kept: Kept) -> None:
    await kept.keeper.flush()
    assert kept.store.written == []


@pytest.mark.parametrize("error", [AgentMuxError("UNAVAILABLE", "away"), RuntimeError("of the driver")])
async def test_changes_are_written_once_the_database_is_back(kept: Kept, error: Exception) -> None:
    kept.store.is_away, kept.store.error = True, error
    kept.keeper.put("a", {"state": "running"})
    await kept.store.asked.wait()
    kept.keeper.put("a", {"exit": 1})
    kept.keeper.put("b", {"exit": 2})
    assert kept.keeper.has("a")
    kept.store.is_away = False
    await kept.keeper.flush()
    assert kept.store.rows == {"a": {"state": "running", "exit": 1}, "b": {"exit": 2}}


async def test_changes_during_a_write_are_written_too(kept: Kept) -> None:
    kept.store.hold = anyio.Event()
    kept.keeper.put("a", {"state": "running"})
    await kept.store.asked.wait()
    kept.keeper.put("a", {"state": "completed"})
    assert kept.keeper.has("a")
    kept.store.hold.set()
    await kept.keeper.flush()
    assert kept.store.rows == {"a": {"state": "completed"}}
    assert kept.store.written == [{"a": {"state": "running"}}, {"a": {"state": "completed"}}]


async def test_flush_does_not_wait_for_later_changes(kept: Kept) -> None:
    kept.store.hold = anyio.Event()
    kept.keeper.put("a", {"n": 1})
    await kept.store.asked.wait()
    flush = anyio.Event()

    async def wait() -> None:
        await kept.keeper.flush()
        flush.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wait)
        await anyio.lowlevel.checkpoint()
        kept.keeper.put("b", {"n": 2})
        first, kept.store.hold = kept.store.hold, anyio.Event()
        first.set()
        await flush.wait()
    assert "b" not in kept.store.rows
    kept.store.hold.set()


async def test_a_row_that_is_rejected_permanently_affects_no_other(
    kept: Kept, caplog: pytest.LogCaptureFixture
) -> None:
    kept.store.refused = {"bad"}
    for run_id in ("a", "bad", "b"):
        kept.keeper.put(run_id, {"n": 1})
    await kept.keeper.flush()
    assert set(kept.store.rows) == {"a", "b"}
    assert "cannot write the changes of run bad" in caplog.text


async def test_a_run_that_never_was_is_removed_whatever_was_to_be_written(kept: Kept) -> None:
    kept.store.rows["a"] = {"n": 0}
    kept.keeper.put("a", {"n": 1})
    kept.keeper.remove("a")
    kept.keeper.put("a", {"n": 2})
    assert kept.keeper.is_removing("a")
    await kept.keeper.flush()
    assert kept.store.rows == {}
    assert not kept.keeper.is_removing("a")


async def test_a_removal_that_failed_is_one_still(kept: Kept) -> None:
    kept.store.rows["a"] = {"n": 0}
    kept.store.is_away = True
    kept.keeper.put("a", {"n": 1})
    await kept.store.asked.wait()
    kept.keeper.remove("a")
    await anyio.sleep(0.01)
    kept.store.is_away = False
    await kept.keeper.flush()
    assert kept.store.rows == {}


async def test_discarded_changes_do_not_block_flush(kept: Kept) -> None:
    kept.store.is_away = True
    kept.keeper.put("a", {"n": 1})
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(kept.keeper.flush)
        await kept.store.asked.wait()
        kept.keeper.discard("a")
    kept.store.is_away = False
    assert not kept.keeper.has("a")
