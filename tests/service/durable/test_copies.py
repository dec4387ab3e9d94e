"""The copy of a service directory: two servers never do the same work, and never end each other's agents."""

import json
import shutil
import signal
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest
from tests.service.durable.opened import HI, opened
from tests.service.durable.postgres import Cluster
from tests.service.durable.processes import ServerProcess, events_of, nothing_lives, until
from tests.service.receiver import receiving

from agent_mux.errors import AgentMuxError
from agent_mux.process.marker import processes_of
from agent_mux.service.instance import ID_FILE, PLACE_FILE, current_place, exclusive_instance
from agent_mux.service.service import Service, open_database
from agent_mux.service.settings import ServiceSettings
from agent_mux.service.store.instances import InstanceRow
from agent_mux.service.store.runs import RowChange, RunStore

pytestmark = pytest.mark.anyio
SLEEPS = """
run = next(name for name in os.environ if name.startswith("AGENT_MUX_RUN_"))
with open({starts!r}, "a") as starts: starts.write(run + "\\n")
read(); emit(session="s"); emit(text="working ")
while not os.path.exists({go!r}): time.sleep(0.02)
emit(text="done"); emit(over=True); emit(done=True); drain()
"""


class Place:
    """Two directories and an agent that works until it may go on."""

    def __init__(self, tmp_path: Path) -> None:
        self.original, self.copy = tmp_path / "original", tmp_path / "copy"
        self.go, self.starts = tmp_path / "go", tmp_path / "starts"
        self.body = SLEEPS.format(starts=str(self.starts), go=str(self.go))
        self.starts.touch()

    def serve(self, directory: Path, **chosen: Any) -> ServerProcess:
        return ServerProcess(directory, self.body, **{"max_concurrent_runs": 1, **chosen})

    def copy_now(self) -> None:
        shutil.copytree(self.original, self.copy, ignore=shutil.ignore_patterns("*.lock"))

    def started(self) -> list[str]:
        return [line.removeprefix("AGENT_MUX_RUN_") for line in self.starts.read_text().split()]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def begun(server: ServerProcess) -> tuple[str, str]:
    """A run whose agent works, and one that waits for it."""
    working = server.create()
    until(lambda: server.run(working)["eventCount"] > 2)
    until(lambda: processes_of(working))
    return working, server.create()


def id_of(directory: Path) -> str:
    return (directory / "service" / ID_FILE).read_text().strip()


@pytest.mark.slow
@pytest.mark.parametrize("is_original_running", [True, False])
def test_a_copy_leaves_the_runs_of_its_original_alone(place: Place, is_original_running: bool) -> None:
    with place.serve(place.original) as original:
        working, waiting = begun(original)
        agents = processes_of(working)
        place.copy_now()
        if not is_original_running:
            original.process.send_signal(signal.SIGSTOP)
        with place.serve(place.copy) as copy:
            assert id_of(place.copy) != id_of(place.original)
            shown = {run: copy.run(run) for run in (working, waiting)}
            assert [one["state"] for one in shown.values()] == ["lost", "lost"]
            assert [one["exitReason"] for one in shown.values()] == ["lost", "lost"]
            assert "copy" in shown[working]["result"]["error"]["message"]
            assert processes_of(working) == agents, "the copy ended an agent of the original"
            assert place.started() == [working], "the copy started a run of the original"
            own = copy.create()
            until(lambda: own in place.started())
            original.process.send_signal(signal.SIGCONT)
            place.go.touch()
            assert [until(lambda run=run: _over(original, run)) for run in (working, waiting)] == ["completed"] * 2
            assert until(lambda: _over(copy, own)) == "completed"
            assert copy.run(working)["state"] == "lost"
    assert sorted(place.started()) == sorted([working, waiting, own]), "each run was started once"
    until(lambda: nothing_lives([working, waiting, own]))


def _over(server: ServerProcess, run_id: str) -> str | None:
    return server.run(run_id).get("exitReason")


@pytest.mark.slow
def test_the_copy_has_the_history_and_its_events(place: Place) -> None:
    place.go.touch()
    with place.serve(place.original) as original:
        done = original.create()
        before = original.stream(done)
        original.end(signal.SIGTERM)
    place.copy_now()
    for _ in range(2):
        with place.serve(place.copy) as copy:
            assert [run["runId"] for run in copy.runs()] == [done]
            assert copy.stream(done) == before
            copy.end(signal.SIGTERM)
    with place.serve(place.original) as original:
        assert [run["runId"] for run in original.runs()] == [done]


@pytest.mark.slow
def test_the_copied_part_of_an_unfinished_run_can_be_read(place: Place) -> None:
    with place.serve(place.original) as original:
        working, _ = begun(original)
        place.copy_now()
        with place.serve(place.copy) as copy:
            events = events_of(copy.stream(working))
            assert "working " in [event.get("delta") for event in events]
            assert copy.run(working)["eventCount"] == len(events)
        place.go.touch()
        assert until(lambda: _over(original, working)) == "completed"


@pytest.mark.slow
def test_a_moved_directory_keeps_its_id(place: Place) -> None:
    with place.serve(place.original) as original:
        working, waiting = begun(original)
    before = id_of(place.original)
    place.original.rename(place.copy)
    place.go.touch()
    with place.serve(place.copy) as moved:
        assert id_of(place.copy) == before
        assert moved.run(working)["state"] == "lost"
        assert until(lambda: _over(moved, waiting)) == "completed"


@pytest.mark.slow
def test_webhooks_of_a_copy_are_silent(place: Place) -> None:
    with receiving() as receiver, place.serve(place.original, allow_private_webhooks=True) as original:
        hook = original.http.post("/v1/webhooks", json={"url": receiver.url, "events": ["run.ended"]}).json()
        working, _ = begun(original)
        place.copy_now()
        with place.serve(place.copy, allow_private_webhooks=True) as copy:
            assert copy.run(working)["state"] == "lost"
            shown = copy.http.get(f"/v1/webhooks/{hook['webhookId']}").json()
            assert shown["enabled"] is False
            assert "copied" in shown["disabledReason"]
            copy.end(signal.SIGTERM)
        assert receiver.messages == []


@pytest.mark.slow
def test_a_copy_with_a_shared_database_begins_without_runs(place: Place, cluster: Cluster) -> None:
    url = cluster.url()
    with place.serve(place.original, database=url) as original:
        working, waiting = begun(original)
        agents = processes_of(working)
        place.copy_now()
        with place.serve(place.copy, database=url) as copy:
            assert id_of(place.copy) != id_of(place.original)
            assert copy.runs() == []
            own = copy.create()
            assert processes_of(working) == agents
            assert [run["runId"] for run in original.runs()] == [waiting, working]
            place.go.touch()
            for server, run in ((original, working), (original, waiting), (copy, own)):
                assert until(lambda server=server, run=run: _over(server, run)) == "completed"
    assert sorted(place.started()) == sorted([working, waiting, own])


@pytest.mark.slow
async def test_webhooks_are_silent_after_a_takeover(tmp_path: Path) -> None:
    with receiving() as receiver:
        settings = {"allow_private_webhooks": True}
        async with opened(tmp_path, **settings) as service:
            hook = await service.webhooks.create({"url": receiver.url})
            await InstanceRow(service.database, service.instance).take()
            with anyio.fail_after(30):
                while not _is_closing(service):  # noqa: ASYNC110  # the next heartbeat sets no event
                    await anyio.sleep(0.05)
            with pytest.raises(AgentMuxError, match="taken over"):
                await service.webhooks.test(hook.webhook_id)
            with pytest.raises(AgentMuxError, match="taken over"):
                await service.starter.create(HI)
            assert service.webhooks._workers == {}
        assert receiver.messages == []


def _is_closing(service: Service) -> bool:
    try:
        service.starter.require_open()
    except AgentMuxError:
        return True
    return False


@pytest.mark.slow
def test_a_server_whose_row_was_taken_over_writes_nothing_more(place: Place, cluster: Cluster) -> None:
    """The case that no file shows: the other directory has the id and is taken for the place of the id."""
    url = cluster.url()
    with place.serve(place.original, database=url) as original:
        assert original.http.get("/ready").status_code == 200
        finished = original.create()
        place.go.touch()
        until(lambda: _over(original, finished))
        place.go.unlink()
        waiting = original.create(env={"SECRET_TOKEN": "not-stored-so-it-cannot-start-again"})
        until(lambda: processes_of(waiting))
        place.copy_now()
        (place.copy / "service" / PLACE_FILE).unlink()
        with place.serve(place.copy, database=url) as other:
            assert id_of(place.copy) == id_of(place.original)
            before = other.runs()
            refused = original.http.post("/v1/runs", json=HI)
            assert (refused.status_code, refused.json()["code"]) == (503, "UNAVAILABLE")
            assert "taken over" in refused.json()["detail"]
            assert original.http.get("/ready").status_code == 503
            assert "taken over" in original.http.get("/ready").json()["detail"]
            until(lambda: nothing_lives([waiting]))
            assert other.http.get("/ready").status_code == 200
            own = other.create()
            original.end(signal.SIGTERM)
            assert [run for run in other.runs() if run["runId"] != own] == before, "the first server wrote"


# -- without processes


@pytest.mark.slow
async def test_stores_write_nothing_after_a_takeover(database_url: str, tmp_path: Path) -> None:
    settings = ServiceSettings(config_dir=tmp_path / "config", database=database_url)
    async with opened(tmp_path / "config", database=database_url) as service:
        view, _ = await service.starter.create(HI)
        await service.streams.result(view.run_id)
        assert await service.runs.flush()
        instance = service.instance
    async with open_database(settings) as database:
        first, second = InstanceRow(database, instance), InstanceRow(database, instance)
        await first.take()
        await second.take()
        change = {view.run_id: RowChange({"model": "changed"})}
        for attempt in (RunStore(first).write(change), RunStore(first).remove([view.run_id]), first.beat()):
            with pytest.raises(AgentMuxError, match="taken over") as caught:
                await attempt
            assert (caught.value.code, caught.value.recoverable) == ("UNAVAILABLE", False)
        row = await RunStore(second).get(view.run_id)
        assert row is not None
        assert row.model != "changed"
        await RunStore(second).write(change)
        await second.beat()


@pytest.mark.slow
async def test_a_takeover_waits_for_a_transaction_and_stops_the_next(database_url: str, tmp_path: Path) -> None:
    settings = ServiceSettings(config_dir=tmp_path, database=database_url)
    async with open_database(settings) as database:
        first, second = (InstanceRow(database, "0" * 26) for _ in range(2))
        await first.take()
        taken = anyio.Event()

        async def take() -> None:
            await second.take()
            taken.set()

        with anyio.fail_after(30):
            async with anyio.create_task_group() as tasks, first.writing():
                tasks.start_soon(take)
                await anyio.wait_all_tasks_blocked()
                assert not taken.is_set()
        with pytest.raises(AgentMuxError, match="taken over"):
            await first.beat()


def changed(directory: Path, **values: Any) -> None:
    path = directory / PLACE_FILE
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


@pytest.mark.slow
@pytest.mark.parametrize("values", [{"device": 1}, {"inode": 1}, {"machine": "another"}])
def test_an_id_of_another_place_is_replaced_once(tmp_path: Path, values: dict[str, Any]) -> None:
    with exclusive_instance(tmp_path) as first:
        assert first.copy_of is None
    changed(tmp_path, **values)
    with exclusive_instance(tmp_path) as second:
        assert second.instance_id != first.instance_id
        assert second.copy_of == first.instance_id
    with exclusive_instance(tmp_path) as third:  # the copy was not completed
        assert (third.instance_id, third.copy_of) == (second.instance_id, first.instance_id)
        third.complete_copy()
    with exclusive_instance(tmp_path) as fourth:
        assert (fourth.instance_id, fourth.copy_of) == (second.instance_id, None)


@pytest.mark.slow
def test_a_change_of_the_id_that_was_interrupted_is_completed(tmp_path: Path) -> None:
    with exclusive_instance(tmp_path) as first:
        pass
    place = msgspec.structs.replace(current_place(tmp_path), copy_of=first.instance_id)
    (tmp_path / PLACE_FILE).write_bytes(msgspec.json.encode(place))
    with exclusive_instance(tmp_path) as second:
        assert second.instance_id != first.instance_id
        assert second.copy_of == first.instance_id


@pytest.mark.slow
def test_a_directory_of_an_earlier_version_keeps_its_id(tmp_path: Path) -> None:
    with exclusive_instance(tmp_path) as first:
        pass
    (tmp_path / PLACE_FILE).unlink()
    with exclusive_instance(tmp_path) as second:
        assert (second.instance_id, second.copy_of) == (first.instance_id, None)
    assert (tmp_path / PLACE_FILE).exists()
