"""What happens at the same time in the life of a run: its end, its outcome, its deletion, and requests for it."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from msgspec import UNSET
from tests.service.durable.opened import HI, finished, opened
from ulid import ULID

from agent_mux.errors import AgentMuxError
from agent_mux.run.base import TERMINAL_STATES
from agent_mux.service.runs import starter as starter_module
from agent_mux.service.service import Service
from agent_mux.service.store.runs import RunFilter

pytestmark = pytest.mark.anyio
PATIENCE = 60.0  # seconds
MOMENT = 0.2  # seconds in which something happens that must not
ASKS = "read(); emit(session='S'); emit(ask='it'); read(); emit(text='hello'); emit(done=True); drain()"


@pytest.fixture
async def service(tmp_path: Path) -> Any:
    with anyio.fail_after(PATIENCE):
        async with opened(tmp_path) as service:
            yield service


@contextmanager
def held_outcome(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Hold the recording of outcomes after the end of runs until the event is set."""
    go_on = threading.Event()
    real = starter_module._file_size

    def held(journal: str | None) -> int | None:
        go_on.wait(PATIENCE)
        return real(journal)

    monkeypatch.setattr(starter_module, "_file_size", held)
    try:
        yield go_on
    finally:
        go_on.set()


async def ended_handle(service: Service, run_id: str) -> None:
    live = service.runs.find(run_id)
    assert live is not None
    await live.handle.result()


@pytest.mark.parametrize("way", ["result", "get", "page", "stream"])
async def test_the_outcome_is_visible_with_the_end(service: Service, monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    views: list[Any] = []

    async def ask(run_id: str) -> None:
        live = service.runs.find(run_id)
        if way == "stream":
            async for _ in service.streams.batches(run_id, 0):
                pass
        if way == "result":
            await service.streams.result(run_id)
            assert live is not None
            views.append(live.view(full=False))
        elif way == "page":
            views.extend(await service.runs.page(RunFilter(), limit=9))
        else:
            views.append(await service.runs.get(run_id))

    with held_outcome(monkeypatch) as go_on:
        view, _ = await service.starter.create(HI)
        await ended_handle(service, view.run_id)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask, view.run_id)
            await anyio.sleep(MOMENT)
            assert views == []
            go_on.set()
    (seen,) = views
    assert (seen.state, seen.exit_reason) == ("completed", "completed")
    assert seen.ended_at is not UNSET


@pytest.mark.slow
async def test_an_id_is_free_once_its_deletion_is_complete(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    body = {**HI, "runId": str(ULID())}
    view, _ = await service.starter.create(body)
    await finished(service, view.run_id)
    calls: list[str] = []
    removed, added = anyio.Event(), anyio.Event()
    store = service.runs._store
    remove, add = store.remove, store.add

    async def late_remove(run_ids: Any) -> None:
        await remove(run_ids)
        removed.set()
        with anyio.move_on_after(MOMENT):
            await added.wait()
        calls.append("removed")

    async def noted_add(row: Any) -> bool:
        calls.append("added")
        is_added = await add(row)
        added.set()
        return is_added

    monkeypatch.setattr(store, "remove", late_remove)
    monkeypatch.setattr(store, "add", noted_add)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(service.runs.delete, view.run_id)
        await removed.wait()
        await service.starter.create(body)
    assert calls == ["removed", "added"]
    await finished(service, view.run_id)
    row = await store.get(view.run_id)
    assert row is not None
    assert (row.state, row.started_at is None) == ("completed", False)


async def test_a_second_deletion_spares_a_new_run_with_the_id(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = {**HI, "runId": str(ULID())}
    view, _ = await service.starter.create(body)
    await finished(service, view.run_id)
    await service.runs.delete(view.run_id)
    with held_outcome(monkeypatch):
        await service.starter.create(body)
        await ended_handle(service, view.run_id)
        await service.runs.delete_many([view.run_id])  # retention chose it before the first deletion
    await finished(service, view.run_id)
    assert (await service.runs.get(view.run_id)).state == "completed"
    assert service.runs.journal_of(view.run_id).exists()


@pytest.mark.slow
async def test_concurrent_deletions_of_the_same_runs_end(service: Service) -> None:
    run_ids = []
    for _ in range(3):
        view, _ = await service.starter.create(HI)
        await finished(service, view.run_id)
        run_ids.append(view.run_id)
    refused: list[str] = []

    async def delete(run_id: str) -> None:
        try:
            await service.runs.delete(run_id)
        except AgentMuxError as error:
            refused.append(error.code)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(service.runs.delete_many, run_ids)
        tasks.start_soon(service.runs.delete_many, run_ids[::-1])
        for run_id in run_ids:
            tasks.start_soon(delete, run_id)
    assert set(refused) <= {"RUN_NOT_FOUND"}
    assert await service.runs.page(RunFilter(), limit=9) == []


class Broken:
    """An observer with an error in every method."""

    def __init__(self) -> None:
        self.called: list[str] = []
        self.asked = anyio.Event()

    def started(self, *_: Any) -> Any:
        self.called.append("started")
        raise RuntimeError("started")

    def interaction_requested(self, *_: Any) -> Any:
        self.called.append("interaction_requested")
        self.asked.set()
        raise RuntimeError("interaction_requested")

    def ended(self, *_: Any) -> Any:
        self.called.append("ended")
        raise RuntimeError("ended")


async def test_an_observer_that_raises_loses_no_outcome(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = Broken()
    with anyio.fail_after(PATIENCE):
        async with opened(tmp_path, ASKS) as service:
            monkeypatch.setattr(service.starter, "_observers", (broken, *service.starter._observers))
            view, _ = await service.starter.create(HI)
            live = service.runs.find(view.run_id)
            assert live is not None
            await broken.asked.wait()
            await live.handle.interaction.approve_all()
            await finished(service, view.run_id)
            row = await service.runs.row_of(view.run_id)
            assert row.state in TERMINAL_STATES
            assert row.result is not None
            other, _ = await service.starter.create(HI)
            assert other.state == "spawned", "the service does not continue"
            assert broken.called == ["started", "interaction_requested", "ended"]
