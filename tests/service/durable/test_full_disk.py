"""A disk that is full or a database that was overwritten: what is recorded stays readable, and nothing looks ready."""

import json
import os
import random
import resource
import signal
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
import sqlalchemy as sa
from tests.service.durable.opened import HI, events_of, finished, opened
from tests.service.durable.postgres import Cluster
from tests.service.durable.processes import ServerProcess, until
from tests.service.durable.rows import row

from agent_mux.errors import AgentMuxError
from agent_mux.service.readiness import MIN_INTERVAL
from agent_mux.service.service import open_database
from agent_mux.service.settings import ServiceSettings
from agent_mux.service.store.database import Database, checked_url
from agent_mux.service.store.instances import InstanceRow
from agent_mux.service.store.runs import RunFilter, RunStore

pytestmark = pytest.mark.anyio
LIMIT = 100_000  # bytes of a file
LONG = """
read(); emit(session="s")
for number in range(400): emit(text=f"{number} " + "x" * 1000)
emit(text="the end"); emit(over=True); emit(done=True); drain()"""


@contextmanager
def limited(pid: int, size: int) -> Iterator[None]:
    """Limit the size of the files that a process writes: its disk seems to be full."""
    soft, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (soft, hard))


def texts(messages: list[dict[str, Any]]) -> list[str]:
    return [one["delta"].split()[0] for one in messages if one["type"] == "text_delta"]


def lines_of(server: ServerProcess, run_id: str, query: str = "") -> list[dict[str, Any]]:
    answer = server.http.get(f"/v1/runs/{run_id}/events{query}", headers={"accept": "application/jsonl"})
    assert answer.status_code == 200, answer.text
    return [json.loads(line) for line in answer.text.splitlines()]


@pytest.mark.slow
def test_events_before_the_disk_was_full_are_there_after_a_restart(tmp_path: Path) -> None:
    with ServerProcess(tmp_path / "config", LONG) as server:
        with limited(server.process.pid, LIMIT):
            run = server.create()
            live = server.stream(run)
        assert server.run(run)["exitReason"] == "completed"
        server.end(signal.SIGTERM)
    assert len(live) > 400
    with ServerProcess(tmp_path / "config", LONG) as server:
        *late, warning, result = lines_of(server, run)
        first = server.stream(run)
        assert [first[number] for number in range(len(late))] == [live[number] for number in range(len(late))]
        assert texts(late)[:20] == [str(number) for number in range(20)]
        assert (warning["type"], warning["level"]) == ("debug", "warn")
        assert "the recording ends here" in warning["message"]
        assert (result["type"], result["exitReason"]) == ("run_result", "completed")
        assert [one["type"] for one in late[-3:]] != ["crash"] * 3
        assert not {"crash", "session_end"} & {one["type"] for one in late}
        shown = server.run(run)
        assert shown["eventCount"] == len(late) + 1
        rest = lines_of(server, run, f"?after={len(late) - 1}")
        assert rest == [warning, result]
        past = server.http.get(f"/v1/runs/{run}/events", headers={"last-event-id": str(len(late) + 1)})
        assert past.status_code == 204


@pytest.mark.slow
async def test_a_run_that_never_had_a_journal_has_no_events(tmp_path: Path) -> None:
    async with opened(tmp_path, LONG) as service:
        view, _ = await service.starter.create(HI)
        await finished(service, view.run_id)
        (tmp_path / "runs" / f"{view.run_id}.journal").unlink()
        row = await service.runs.row_of(view.run_id)
        service.runs._recent.clear()
        service.runs.record(view.run_id, {"journal": None})
        assert await service.runs.flush()
        assert row.event_count
        assert await events_of(service, view.run_id) == []


@pytest.mark.slow
@pytest.mark.parametrize("has_run", [True, False])
def test_a_service_that_cannot_write_is_not_ready(tmp_path: Path, has_run: bool) -> None:
    with ServerProcess(tmp_path / "config", LONG) as server:
        if has_run:
            server.stream(server.create())
        with limited(server.process.pid, 0):
            refused = server.http.post("/v1/runs", json=HI)
            # Without an earlier run, the temporary directory is searched now, and none can be written.
            code = "UNAVAILABLE" if has_run else "SPAWN_ERROR"
            assert (refused.status_code, refused.json()["code"]) == (503, code)
            until(lambda: server.http.get("/ready").status_code == 503)
            assert server.http.get("/ready").json()["code"] == "UNAVAILABLE"
            assert server.http.get("/health").status_code == 200
        until(lambda: server.http.get("/ready").status_code == 200)
        assert server.http.post("/v1/runs", json=HI).status_code == 201


@pytest.mark.slow
def test_a_service_that_cannot_write_recordings_is_not_ready(tmp_path: Path) -> None:
    with ServerProcess(tmp_path / "config", LONG) as server:
        assert server.http.get("/ready").status_code == 200
        runs = tmp_path / "config" / "runs"
        runs.rmdir()
        runs.write_text("a file")
        until(lambda: server.http.get("/ready").status_code == 503)
        assert str(runs) in server.http.get("/ready").json()["detail"]
        runs.unlink()
        until(lambda: server.http.get("/ready").status_code == 200)


@pytest.mark.slow
def test_many_requests_for_readiness_share_a_check(tmp_path: Path) -> None:
    """Anybody may send them, and a check writes to the disk."""
    assert MIN_INTERVAL >= 1
    with ServerProcess(tmp_path / "config", LONG) as server:
        for _ in range(50):
            assert server.http.get("/ready").status_code == 200


# -- databases that were overwritten


@pytest.mark.slow
@pytest.mark.parametrize("change", ["removed", "replaced"])
def test_a_database_file_that_is_gone_is_reported(tmp_path: Path, change: str) -> None:
    with ServerProcess(tmp_path / "config", LONG) as server:
        path = tmp_path / "config" / "service" / "service.db"
        if change == "removed":
            path.unlink()
        else:
            path.with_suffix(".new").write_bytes(path.read_bytes())
            os.replace(path.with_suffix(".new"), path)  # noqa: PTH105
        until(lambda: server.http.get("/ready").status_code == 503)
        assert "was removed or replaced" in server.http.get("/ready").json()["detail"]


@pytest.mark.slow
def test_an_overwritten_database_is_reported_with_the_next_step(tmp_path: Path) -> None:
    with ServerProcess(tmp_path / "config", LONG) as server:
        server.stream(server.create())
        (tmp_path / "config" / "service" / "service.db").write_bytes(b"hello " * 20_000)
        answer = server.http.get("/v1/runs")
        assert (answer.status_code, answer.json()["code"]) == (503, "UNAVAILABLE")
        assert "is damaged or was replaced" in answer.json()["detail"]
        assert "restore it from a backup" in answer.json()["detail"]
        assert answer.json()["recoverable"] is False


@pytest.mark.slow
@pytest.mark.parametrize("content", [b"hello ", b"\0"])
def test_service_whose_database_was_overwritten_is_not_ready(tmp_path: Path, content: bytes) -> None:
    with ServerProcess(tmp_path / "config", LONG) as server:
        server.stream(server.create())
        assert server.http.get("/ready").status_code == 200
        path = tmp_path / "config" / "service" / "service.db"
        path.write_bytes(content * (path.stat().st_size // len(content)))
        until(lambda: server.http.get("/ready").status_code == 503)
        assert "is damaged or was replaced" in server.http.get("/ready").json()["detail"]


async def filled(path: Path) -> bytes:
    """The bytes of a database with 50 runs."""
    async with open_database(ServiceSettings(config_dir=path, database=f"sqlite:///{path}/good.db")) as database:
        own = InstanceRow(database, "0" * 26)
        await own.take()
        for number in range(50):
            await RunStore(own).add(row(number, tags=("a", "b"), request="x" * 500))
    return (path / "good.db").read_bytes()


def damaged(data: bytes, chance: random.Random) -> bytes:
    overwritten = bytearray(data)
    match chance.choice(["bytes", "zeros", "cut", "page", "noise", "text", "head"]):
        case "bytes":
            for _ in range(chance.choice([1, 10, 200])):
                overwritten[chance.randrange(len(data))] = chance.randrange(256)
        case "zeros":
            start = chance.randrange(len(data))
            overwritten[start : start + 5000] = bytes(len(overwritten[start : start + 5000]))
        case "cut":
            return data[: chance.randrange(len(data))]
        case "page":
            start = chance.randrange(len(data) // 4096) * 4096
            overwritten[start : start + 4096] = chance.randbytes(4096)
        case "noise":
            return chance.randbytes(chance.choice([10, 100, 5000, 50_000]))
        case "text":
            return b"hello world\n" * chance.choice([1, 10, 1000])
        case "head":
            return data[:100] + chance.randbytes(len(data) - 100)
    return bytes(overwritten)


@pytest.mark.slow
async def test_no_damage_is_an_internal_error(tmp_path: Path) -> None:
    data, chance = await filled(tmp_path), random.Random(1)  # noqa: S311  # a seed, so that it can be done again
    codes = set()
    for number in range(150):
        path = tmp_path / f"{number}.db"
        path.write_bytes(damaged(data, chance))
        database = Database(checked_url(f"sqlite:///{path}", path))
        try:
            await database.open()
            own = InstanceRow(database, "0" * 26)
            await own.take()
            await RunStore(own).unfinished()
            await RunStore(own).page(RunFilter(), limit=5)
            await RunStore(own).add(row(5))
        except AgentMuxError as error:
            codes.add(error.code)
        finally:
            await database.close()
    assert codes == {"CONFIG_ERROR", "UNAVAILABLE"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "statement"),
    [
        ("sqlite", "DROP TABLE tokens"),
        ("postgresql", "DROP TABLE tokens"),
        ("postgresql", "ALTER TABLE runs DROP COLUMN owner"),
    ],
)
async def test_a_database_without_its_tables_is_refused(
    kind: str, statement: str, cluster: Cluster, tmp_path: Path
) -> None:
    url = cluster.url() if kind == "postgresql" else f"sqlite:///{tmp_path}/service.db"
    settings = ServiceSettings(config_dir=tmp_path, database=url)
    async with open_database(settings) as database, database.writing() as connection:
        await connection.execute(sa.text(statement))
    with pytest.raises(AgentMuxError, match="is damaged or was replaced: table") as caught:
        async with open_database(settings):
            pass
    assert caught.value.code == "CONFIG_ERROR"


@pytest.mark.slow
async def test_a_table_that_vanishes_while_the_service_runs_is_damage(database_url: str, tmp_path: Path) -> None:
    async with open_database(ServiceSettings(config_dir=tmp_path, database=database_url)) as database:
        async with database.writing() as connection:
            await connection.execute(sa.text("DROP TABLE tokens"))
        with pytest.raises(AgentMuxError, match="is damaged or was replaced") as caught:
            async with database.reading() as connection:
                await connection.execute(sa.text("SELECT * FROM tokens"))
        assert (caught.value.code, caught.value.recoverable) == ("UNAVAILABLE", False)


@pytest.mark.slow
def test_the_database_of_another_program_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "service.db"
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE runs (x)")
    other.close()

    async def begin() -> None:
        async with open_database(ServiceSettings(config_dir=tmp_path, database=f"sqlite:///{path}")):
            pass

    with pytest.raises(AgentMuxError) as caught:
        anyio.run(begin)
    assert caught.value.code == "CONFIG_ERROR"
