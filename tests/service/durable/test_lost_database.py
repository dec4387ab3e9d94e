"""A database that is removed, emptied or exchanged, under a running service and between two starts."""

import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import anyio
import pytest
import sqlalchemy as sa
from tests.service.durable.opened import HI, finished, opened
from tests.service.durable.postgres import Cluster
from tests.service.durable.processes import ServerProcess

from agent_mux.errors import AgentMuxError
from agent_mux.service.store.database import checked_url, new_migration_engine

pytestmark = pytest.mark.anyio
BODY = 'read(); emit(session="s"); emit(text="hello"); emit(over=True); emit(done=True); drain()'


def database_of(directory: Path) -> Path:
    return directory / "service" / "service.db"


def removed(directory: Path) -> None:
    for path in (directory / "service").glob("service.db*"):
        path.unlink()


def emptied(directory: Path) -> None:
    os.truncate(database_of(directory), 0)


def replaced_by_an_empty_one(directory: Path) -> None:
    removed(directory)
    database_of(directory).touch()


def without_rows(directory: Path) -> None:
    with closing(sqlite3.connect(database_of(directory))) as database, database:
        for table in ("run_tags", "runs", "instances", "tokens"):
            database.execute(f"DELETE FROM {table}")  # noqa: S608  # one of these


LOSSES = [removed, emptied, replaced_by_an_empty_one, without_rows]
Loss = Callable[[Path], None]


@pytest.mark.slow
@pytest.mark.parametrize("lose", LOSSES)
def test_a_running_service_refuses_new_runs(tmp_path: Path, lose: Loss) -> None:
    with ServerProcess(tmp_path, BODY) as server:
        server.stream(server.create())
        journals = len(list((tmp_path / "runs").glob("*.journal")))
        lose(tmp_path)
        for answer in (server.http.post("/v1/runs", json=HI), server.http.get("/ready")):
            assert (answer.status_code, answer.json()["code"]) == (503, "UNAVAILABLE"), answer.text
            assert "restore it" in answer.json()["detail"]
            assert answer.json()["recoverable"] is False
        assert server.http.get("/health").status_code == 200
        assert len(list((tmp_path / "runs").glob("*.journal"))) == journals


async def begun(directory: Path, database: str | None = None) -> str:
    """A service that had a run; gives its id."""
    async with opened(directory, BODY, database=database) as service:
        view, _ = await service.starter.create(HI)
        await finished(service, view.run_id)
        return view.run_id


async def refused(directory: Path, database: str | None = None) -> str:
    with pytest.raises(AgentMuxError) as caught:
        async with opened(directory, BODY, database=database):
            pass
    assert caught.value.code == "CONFIG_ERROR"
    assert "--new-database" in caught.value.message
    assert "restore it" in caught.value.message
    return caught.value.message


@pytest.mark.parametrize("lose", LOSSES)
async def test_a_start_without_the_earlier_database_is_refused(tmp_path: Path, lose: Loss) -> None:
    run_id = await begun(tmp_path)
    backup = tmp_path / "backup"
    shutil.copy(database_of(tmp_path), backup)
    lose(tmp_path)
    for _ in range(2):
        assert str(tmp_path) in await refused(tmp_path)
    removed(tmp_path)
    shutil.copy(backup, database_of(tmp_path))
    async with opened(tmp_path, BODY) as service:
        assert (await service.runs.get(run_id)).state == "completed"


@pytest.mark.slow
async def test_a_start_without_the_variable_of_the_database_is_refused(tmp_path: Path, cluster: Cluster) -> None:
    url = cluster.url()
    await begun(tmp_path, url)
    assert "postgresql://" in await refused(tmp_path)
    assert not database_of(tmp_path).exists(), "an empty one was created"
    await refused(tmp_path, cluster.url())
    async with opened(tmp_path, BODY, database=url):
        pass


async def test_an_option_begins_with_a_new_database(tmp_path: Path) -> None:
    await begun(tmp_path)
    removed(tmp_path)
    await refused(tmp_path)
    async with opened(tmp_path, BODY, new_database=True):
        pass
    async with opened(tmp_path, BODY):
        pass


async def test_a_directory_without_runs_may_change_its_database(tmp_path: Path) -> None:
    async with opened(tmp_path, BODY):
        pass
    async with opened(tmp_path, BODY, database=f"sqlite:///{tmp_path}/other.db"):
        pass


async def test_recordings_of_the_command_line_are_no_runs_of_a_new_service(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "01M827HBMYXPAB2RSEB041G7GN.journal").touch()
    async with opened(tmp_path, BODY):
        pass


@pytest.mark.slow
async def test_an_emptied_postgres_database_is_noticed(tmp_path: Path, cluster: Cluster) -> None:
    url = cluster.url()
    with anyio.fail_after(60):
        async with opened(tmp_path, BODY, database=url) as service:
            view, _ = await service.starter.create(HI)
            await finished(service, view.run_id)
            engine = new_migration_engine(checked_url(url, tmp_path))
            with engine.begin() as connection:
                connection.execute(sa.text("TRUNCATE runs, run_tags, instances, tokens CASCADE"))
            engine.dispose()
            for attempt in (service.starter.create(HI), service.readiness.check()):
                with pytest.raises(AgentMuxError, match="emptied or exchanged") as caught:
                    await attempt
                assert (caught.value.code, caught.value.recoverable) == ("UNAVAILABLE", False)
