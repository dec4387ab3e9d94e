"""Concurrent requests between the insert of a row, the journal and the start of a run."""

from pathlib import Path
from typing import Any

import anyio
import pytest
from sqlalchemy import event
from tests.service.durable.opened import FOR_EVER, HI, finished, opened
from ulid import ULID

from agent_mux.errors import AgentMuxError, ValidationError
from agent_mux.run.commands import AbortCommand
from agent_mux.service.routes.events import is_past_end
from agent_mux.service.service import Service
from agent_mux.service.store.runs import RunFilter

pytestmark = pytest.mark.anyio


class Held:
    """The database answers a new row late."""

    def __init__(self, service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
        self.added, self.go_on = anyio.Event(), anyio.Event()
        self.error: Exception | None = None
        self._store = service.runs._store
        self._add = self._store.add
        monkeypatch.setattr(self._store, "add", self._late)

    async def _late(self, row: Any) -> bool:
        is_added = await self._add(row)
        self.added.set()
        await self.go_on.wait()
        if self.error is not None:
            raise self.error
        return is_added


@pytest.fixture
async def service(tmp_path: Path) -> Any:
    with anyio.fail_after(30):
        async with opened(tmp_path) as service:
            yield service


async def test_many_that_ask_under_one_key_at_once_get_one_run(service: Service) -> None:
    body: list[tuple[str, bool]] = []

    async def ask() -> None:
        view, is_new = await service.starter.create(HI, idempotency_key="k")
        body.append((view.run_id, is_new))

    async with anyio.create_task_group() as tasks:
        for _ in range(10):
            tasks.start_soon(ask)
    assert len({run_id for run_id, _ in body}) == 1
    assert sorted(is_new for _, is_new in body) == [False] * 9 + [True]


async def test_many_that_ask_for_one_id_at_once_get_one_run(service: Service) -> None:
    run_id, outcomes = str(ULID()), []

    async def ask() -> None:
        try:
            await service.starter.create({**HI, "runId": run_id})
            outcomes.append("begun")
        except ValidationError as error:
            outcomes.append(error.fields[0].path)

    async with anyio.create_task_group() as tasks:
        for _ in range(10):
            tasks.start_soon(ask)
    assert sorted(outcomes) == ["begun"] + ["runId"] * 9


async def test_the_id_of_a_journal_that_is_there_is_taken(service: Service, tmp_path: Path) -> None:
    run_id = str(ULID())
    journal = tmp_path / "runs" / f"{run_id}.journal"
    journal.parent.mkdir()
    journal.write_bytes(b"of `amux run`")
    with pytest.raises(ValidationError):
        await service.starter.create({**HI, "runId": run_id})
    assert journal.read_bytes() == b"of `amux run`"
    assert await service.runs.page(RunFilter(), limit=9) == []


async def test_requests_for_a_run_that_is_being_created_wait(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    held, run_id = Held(service, monkeypatch), str(ULID())
    body: list[Any] = []

    async def abort() -> None:
        body.append(await (await service.runs.active(run_id)).execute(AbortCommand()))

    async def watch() -> None:
        async for _, events in service.streams.batches(run_id, 0):
            body.extend(events)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(service.starter.create, {**HI, "runId": run_id})
        await held.added.wait()
        tasks.start_soon(abort)
        tasks.start_soon(watch)
        with pytest.raises(TimeoutError), anyio.fail_after(0.05):
            await service.runs.get(run_id)
        held.go_on.set()
    assert any(getattr(event, "type", None) == "session_end" for event in body)
    assert (await service.runs.get(run_id)).state in {"aborted", "completed"}


async def test_a_live_run_cannot_be_deleted_whatever_its_row_contains(tmp_path: Path) -> None:
    with anyio.fail_after(30):
        async with opened(tmp_path, FOR_EVER) as service:
            view, _ = await service.starter.create(HI)
            with pytest.raises(AgentMuxError) as caught:
                await service.runs.delete(view.run_id)
            assert caught.value.code == "INVALID_STATE_TRANSITION"


async def test_a_row_of_an_unknown_insert_is_removed(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """The connection breaks when the transaction is committed: 503, and nothing begins, then or later."""
    held, run_id = Held(service, monkeypatch), str(ULID())
    held.error = AgentMuxError("UNAVAILABLE", "the connection is gone")
    held.go_on.set()
    with pytest.raises(AgentMuxError, match="the connection is gone"):
        await service.starter.create({**HI, "runId": run_id}, idempotency_key="k")
    monkeypatch.undo()
    with pytest.raises(AgentMuxError) as caught:
        await service.runs.get(run_id)
    assert caught.value.code == "RUN_NOT_FOUND"
    view, is_new = await service.starter.create(HI, idempotency_key="k")
    assert is_new
    assert [one.run_id for one in await service.runs.page(RunFilter(), limit=9)] == [view.run_id]


async def test_what_cannot_begin_leaves_no_row_and_its_id_and_key_are_free(service: Service) -> None:
    body = {"runId": str(ULID())}
    with pytest.raises(ValidationError):
        await service.starter.create({**HI, **body, "timeout": -1}, idempotency_key="k")
    assert await service.runs.page(RunFilter(), limit=9) == []
    _, is_new = await service.starter.create({**HI, **body}, idempotency_key="k")
    assert is_new


@pytest.mark.parametrize(
    "bad", [{"timeout": -1}, {"agent": "nobody"}, {"outputSchema": {}}, {"profile": "none"}, {"tags": ["x" * 257]}]
)
async def test_an_invalid_request_writes_no_row(
    service: Service, monkeypatch: pytest.MonkeyPatch, bad: dict[str, Any]
) -> None:
    added: list[Any] = []
    monkeypatch.setattr(service.runs._store, "add", added.append)
    with pytest.raises(AgentMuxError):
        await service.starter.create({**HI, **bad})
    assert added == []
    assert not service.runs._write_queue.has_removals


@pytest.mark.slow
async def test_the_readability_of_a_stream_costs_one_query(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    view, _ = await service.starter.create(HI)
    await finished(service, view.run_id)
    service.runs._recent.clear()  # as after a restart
    looks: list[str] = []
    get = service.runs._store.get

    async def counted(run_id: str) -> Any:
        looks.append(run_id)
        return await get(run_id)

    monkeypatch.setattr(service.runs._store, "get", counted)
    assert not await is_past_end(service, view.run_id, 0)
    assert looks == [view.run_id]
    service.runs.journal_of(view.run_id).unlink()
    with pytest.raises(AgentMuxError, match="cannot read the journal"):
        await is_past_end(service, view.run_id, 0)


async def test_runs_are_refused_while_the_service_stops(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refused: list[str] = []

    async def ask(service: Service) -> None:
        try:
            await service.starter.create(HI)
        except AgentMuxError as error:
            refused.append(error.code)

    with anyio.fail_after(30):
        async with opened(tmp_path) as service:
            held = Held(service, monkeypatch)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(ask, service)
                await held.added.wait()
                await service.starter.close()
                held.go_on.set()
        assert refused == ["UNAVAILABLE"]
        async with opened(tmp_path) as service:
            assert await service.runs.page(RunFilter(), limit=9) == []


@pytest.mark.slow
async def test_a_listing_by_state_knows_what_just_happened(service: Service) -> None:
    for _ in range(5):
        view, _ = await service.starter.create(HI)
        await service.streams.result(view.run_id)
        await finished(service, view.run_id)
        assert view.run_id in {one.run_id for one in await service.runs.page(RunFilter(states=("completed",)), limit=9)}


@pytest.mark.slow
async def test_deleting_a_run_does_not_break_its_readers(service: Service, tmp_path: Path) -> None:
    view, _ = await service.starter.create(HI)
    await finished(service, view.run_id)
    service.runs._recent.clear()  # as after a restart
    batches = service.streams.batches(view.run_id, 0)
    first, events = await anext(batches)
    await service.runs.delete(view.run_id)
    rest = [event async for _, more in batches for event in more]
    assert (first, [*events, *rest][-1].type) == (0, "session_end")
    assert await service.streams.result(view.run_id) is None
    assert list((tmp_path / "runs").iterdir()) == []


@pytest.mark.slow
async def test_a_journal_that_cannot_be_removed_keeps_its_run(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise PermissionError(1, "not permitted")

    view, _ = await service.starter.create(HI)
    await finished(service, view.run_id)
    with monkeypatch.context() as patched:
        patched.setattr(Path, "unlink", refuse)
        with pytest.raises(AgentMuxError, match=r"cannot remove the journal .*: not permitted"):
            await service.runs.delete(view.run_id)
    assert (await service.runs.get(view.run_id)).state == "completed"
    await service.runs.delete(view.run_id)


@pytest.mark.slow
async def test_a_disk_that_is_full_refuses_what_is_new_and_stops_nothing(service: Service) -> None:
    running, _ = await service.starter.create(HI)
    engine = service.database._engine.sync_engine

    pages = {"most": 1}  # as many as there are: SQLite reports a full disk

    def limit(connection: Any, *_: Any) -> None:
        connection.cursor().execute(f"PRAGMA max_page_count={pages['most']}")

    event.listen(engine, "checkout", limit)
    long = {**HI, "prompt": "x" * 200_000}
    with pytest.raises(AgentMuxError, match="disk is full") as caught:
        await service.starter.create(long)
    assert caught.value.code == "UNAVAILABLE"
    assert b'"completed"' in (await service.streams.result(running.run_id) or b"")
    assert [one.run_id for one in await service.runs.page(RunFilter(), limit=9)] == [running.run_id]
    pages["most"] = 1_000_000
    view, _ = await service.starter.create(long)
    assert len(await service.runs.page(RunFilter(), limit=9)) == 2
    await finished(service, view.run_id)
