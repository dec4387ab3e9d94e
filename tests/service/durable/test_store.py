"""Rows of runs, on both databases."""

from collections.abc import AsyncIterator
from typing import Any

import anyio
import pytest
import sqlalchemy as sa
from tests.service.durable.rows import ended, open_store, row
from ulid import ULID

from agent_mux.service.store.runs import RowChange, RunFilter, RunPosition, RunStore

pytestmark = pytest.mark.anyio


@pytest.fixture
async def store(database_url: str) -> AsyncIterator[RunStore]:
    async with open_store(database_url) as store:
        yield store


async def test_an_inserted_row_reads_back_unchanged(store: RunStore) -> None:
    body = row(tags=("b", "a", "b"), model="m", idempotency_key="k", request='{"prompt":"hi"}', is_complete=False)
    assert await store.add(body)
    body.tags = ("a", "b")
    assert await store.get(body.run_id) == body
    assert await store.find_by_key("", "k") == body
    assert await store.find_by_key("somebody", "k") is None
    assert await store.get(str(ULID())) is None


async def test_an_id_and_a_key_are_taken_once(store: RunStore) -> None:
    first = row(idempotency_key="k", owner="me")
    assert await store.add(first)
    assert not await store.add(row(run_id=first.run_id))
    assert not await store.add(row(idempotency_key="k", owner="me"))
    assert await store.add(row(idempotency_key="k", owner="you"))
    assert await store.add(row())
    assert await store.add(row())  # without a key, any number


async def test_concurrent_inserts_with_one_key_add_one_row(store: RunStore) -> None:
    added: list[bool] = []

    async def add() -> None:
        added.append(await store.add(row(idempotency_key="k")))

    async with anyio.create_task_group() as tasks:
        for _ in range(8):
            tasks.start_soon(add)
    assert sorted(added) == [False] * 7 + [True]


async def test_changes_are_written_together_and_only_where_there_is_something(store: RunStore) -> None:
    kept, gone, missing = row(), row(tags=("t",)), str(ULID())
    await store.add(kept)
    await store.add(gone)
    await store.write(
        {
            kept.run_id: RowChange({"state": "running", "started_at": 5}),
            gone.run_id: RowChange(None),
            missing: RowChange({"state": "killed"}),
        }
    )
    changed = await store.get(kept.run_id)
    assert changed is not None
    assert (changed.state, changed.started_at) == ("running", 5)
    assert await store.get(gone.run_id) is None
    assert await store.get(missing) is None


async def test_instances_do_not_see_each_other(database_url: str, store: RunStore) -> None:
    mine = row()
    await store.add(mine)
    async with open_store(database_url, str(ULID())) as other:
        assert await other.get(mine.run_id) is None
        await other.remove([mine.run_id])
        await other.write({mine.run_id: RowChange(None)})
        assert not await other.add(row(run_id=mine.run_id))
        assert await other.totals() == (0, 0)
    assert await store.get(mine.run_id) == mine


@pytest.mark.parametrize("text", ["with \0 in it", "half \ud83d an emoji", "x" * 1_000_000])
async def test_text_that_a_database_cannot_store_is_replaced(store: RunStore, text: str) -> None:
    body = row(model=text, session_id=text, cwd=text, project_id=text, result=text, tags=(text[:100],))
    assert await store.add(body)
    await store.write({body.run_id: RowChange({"model": text, "result": text})})
    shown = await store.get(body.run_id)
    assert shown is not None
    assert shown.model == text.replace("\0", "\ufffd").replace("\ud83d", "\ufffd")
    found = await store.page(RunFilter(model=text, session_id=text, project_id=text, tags=(text[:100],)), limit=2)
    assert [one.run_id for one in found] == [body.run_id]
    assert await store.get(text) is None
    assert await store.find_by_key(text, text) is None
    assert await store.page(RunFilter(), after_position=RunPosition(0, text), limit=1) == []


FILTERS: list[tuple[dict[str, Any], list[int]]] = [
    ({}, [5, 4, 3, 2, 1, 0]),
    ({"agent": "other"}, [1]),
    ({"states": ("spawned", "killed")}, [5, 3, 2, 1, 0]),
    ({"exit_reason": "completed"}, [4]),
    ({"owner": "me"}, [3, 2]),
    ({"tags": ("a",)}, [3, 2]),
    ({"tags": ("a", "b")}, [3]),
    ({"since": 1_002, "until": 1_004}, [3, 2]),
    ({"owner": "nobody"}, []),
]


@pytest.mark.parametrize(("wanted", "numbers"), FILTERS)
async def test_filters(store: RunStore, wanted: dict[str, Any], numbers: list[int]) -> None:
    rows = [
        row(0),
        row(1, agent="other"),
        row(2, owner="me", tags=("a",)),
        row(3, owner="me", tags=("a", "b")),
        ended(4, exit_reason="completed"),
        row(5, state="killed"),
    ]
    for one in rows:
        await store.add(one)
    found = await store.page(RunFilter(**wanted), limit=10)
    assert [one.run_id for one in found] == [rows[number].run_id for number in numbers]


async def test_pages_have_each_run_once_while_others_come_and_go(store: RunStore) -> None:
    rows = [row(number // 4) for number in range(40)]  # several at the same millisecond
    for one in rows:
        await store.add(one)
    wanted = [one.run_id for one in sorted(rows, key=lambda one: (one.created_at, one.run_id), reverse=True)]
    found: list[str] = []
    place = None
    while page := await store.page(RunFilter(), after_position=place, limit=7):
        found += [one.run_id for one in page]
        place = RunPosition(page[-1].created_at, page[-1].run_id)
        await store.add(row(1_000 + len(found)))
        await store.remove([page[0].run_id, page[-1].run_id])
    assert found == wanted


INDEXED = [
    (RunFilter(), "ix_runs_instance_created_at_run_id"),
    (RunFilter(since=1_000), "ix_runs_instance_created_at_run_id"),
    (RunFilter(agent="rare"), "ix_runs_agent"),
    (RunFilter(states=("running",)), "ix_runs_state"),
]
TAGGED = [(RunFilter(tags=("rare",)), "ix_run_tags_tag")]
"""SQLite looks each run up instead: for tags that many have, that is quicker."""


async def test_listings_use_the_indexes(store: RunStore) -> None:
    database = store._database
    rare = row(state="running", agent="rare", tags=("rare",))
    await store.add(rare)
    await _fill(store, 3_000)
    explain = "EXPLAIN QUERY PLAN " if database.is_sqlite else "EXPLAIN "
    async with database.reading() as connection:
        for wanted, index in INDEXED if database.is_sqlite else INDEXED + TAGGED:
            statement = store.page_statement(wanted, after_position=RunPosition(5_000, "0"), limit=50)
            text = explain + str(statement.compile(dialect=connection.dialect, compile_kwargs={"literal_binds": True}))
            plan = "\n".join(str(one) for one in await connection.execute(sa.text(text.replace(":", "\\:"))))
            assert index in plan, plan


async def _fill(store: RunStore, count: int) -> None:
    database = store._database
    from agent_mux.service.store.tables import RUN_TAGS, RUNS

    template = row()
    columns = {name: getattr(template, name) for name in template.__struct_fields__ if name != "tags"}
    many = [
        {**columns, "instance": store._instance, "run_id": str(ULID()), "created_at": 2_000 + n, "state": "completed"}
        for n in range(count)
    ]
    async with database.writing() as connection:
        await connection.execute(RUNS.insert(), many)
        await connection.execute(RUN_TAGS.insert(), [{"run_id": one["run_id"], "tag": "usual"} for one in many])
    if not database.is_sqlite:
        async with database.writing() as connection:
            await connection.execute(sa.text("ANALYZE"))
