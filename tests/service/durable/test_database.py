"""Schema, migrations and failures of both databases."""

import sqlite3
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import pytest
import sqlalchemy as sa
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from tests.service.durable.postgres import Cluster

from agent_mux.errors import AgentMuxError
from agent_mux.service.store import database as module
from agent_mux.service.store.database import Database, checked_url, configuration, new_migration_engine, upgrade
from agent_mux.service.store.tables import METADATA, RUNS

pytestmark = pytest.mark.anyio
REPOSITORY = Path(__file__).parents[3]


def address(url: str) -> sa.URL:
    return checked_url(url, Path("unused"))


async def ping(database: Database) -> None:
    async with database.reading() as connection:
        await connection.execute(sa.text("SELECT 1"))


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    database = Database(address(database_url))
    await database.open()
    yield database
    await database.close()


@pytest.mark.slow
async def test_the_migrations_make_the_tables_as_they_are_declared(database_url: str, database: Database) -> None:
    engine = new_migration_engine(address(database_url))
    with engine.begin() as connection:
        context = MigrationContext.configure(connection, opts={"compare_server_default": True})
        assert compare_metadata(context, METADATA) == []
    engine.dispose()


def _revisions() -> list[str]:
    scripts = ScriptDirectory.from_config(configuration())
    return [script.revision for script in scripts.walk_revisions()][::-1]


@pytest.mark.parametrize("revision", _revisions())
async def test_databases_of_earlier_versions_are_migrated_with_their_rows(
    database_url: str, revision: str, tmp_path: Path
) -> None:
    url = address(database_url)
    if url.database is not None:
        Path(url.database).parent.mkdir(exist_ok=True)
    engine = new_migration_engine(url)
    with engine.begin() as connection:
        config = configuration()
        config.attributes["connection"] = connection
        command.upgrade(config, revision)
        earlier = sa.MetaData()
        earlier.reflect(connection)
        row = {column.name: _some(column) for column in earlier.tables["runs"].columns if not column.nullable}
        connection.execute(earlier.tables["runs"].insert().values(**row))
        connection.execute(earlier.tables["run_tags"].insert().values(run_id=row["run_id"], tag="kept"))
    upgrade(url)
    upgrade(url)
    with engine.begin() as connection:
        assert connection.execute(sa.select(RUNS.c.run_id)).scalars().all() == [row["run_id"]]
        assert connection.execute(sa.text("SELECT tag FROM run_tags")).scalars().all() == ["kept"]
    engine.dispose()


def _some(column: sa.Column[Any]) -> Any:
    return {int: 1, bool: True}.get(column.type.python_type, "text")


@pytest.mark.slow
async def test_a_database_of_a_newer_version_is_left_alone(database_url: str, database: Database) -> None:
    async with database.writing() as connection:
        await connection.execute(sa.text("UPDATE alembic_version SET version_num = 'of_the_future'"))
    again = Database(address(database_url))
    with pytest.raises(
        AgentMuxError, match="newer agent-mux created the database \\(revision of_the_future\\)"
    ) as caught:
        await again.open()
    assert caught.value.code == "CONFIG_ERROR"
    await again.close()


FIRST_START = """
import sys
from pathlib import Path
from agent_mux.service.store.database import checked_url
from agent_mux.service.store.database import upgrade
url = checked_url(sys.argv[1], Path("unused"))
sys.stdin.read(1)
upgrade(url)
"""


@pytest.mark.slow
def test_several_servers_may_make_the_tables_at_once(database_url: str) -> None:
    path = address(database_url).database
    assert path is not None
    Path(path).parent.mkdir(exist_ok=True)
    starts = [
        subprocess.Popen([sys.executable, "-c", FIRST_START, database_url], stdin=subprocess.PIPE, cwd=REPOSITORY)
        for _ in range(3)
    ]
    for start in starts:
        assert start.stdin is not None
        start.stdin.write(b"!")
        start.stdin.close()
    assert [start.wait(60) for start in starts] == [0, 0, 0]


@pytest.mark.slow
async def test_a_migration_that_is_interrupted_leaves_nothing_behind(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*arguments: Any, **named: Any) -> None:
        real(*arguments, **named)
        raise OSError("the machine went off")

    real = command.upgrade
    database = Database(address(database_url))
    monkeypatch.setattr(command, "upgrade", interrupted)
    with pytest.raises(AgentMuxError, match="the machine went off"):
        await database.open()
    monkeypatch.undo()
    await database.open()
    await ping(database)
    await database.close()


async def test_a_transaction_is_there_as_a_whole_or_not_at_all(database: Database) -> None:
    with pytest.raises(ZeroDivisionError):  # noqa: PT012  # in the middle of a transaction
        async with database.writing() as connection:
            await connection.execute(sa.text("DELETE FROM alembic_version"))
            raise ZeroDivisionError
    async with database.reading() as connection:
        assert (await connection.execute(sa.text("SELECT count(*) FROM alembic_version"))).scalar() == 1


async def test_a_rejected_statement_is_an_internal_error(cluster: Cluster) -> None:
    database = Database(address(cluster.url()))
    with pytest.raises(AgentMuxError) as caught:  # a connection, and what is done with it
        async with database.reading() as connection:
            await connection.execute(sa.text("SELECT 1 / 0"))
    await database.close()
    assert caught.value.code == "INTERNAL"


async def test_sqlite_needs_no_set_up_and_is_private(tmp_path: Path) -> None:
    path = tmp_path / "service" / "service.db"
    database = Database(checked_url(None, path))
    await database.open()
    async with database.writing() as connection:
        await connection.execute(sa.text("UPDATE alembic_version SET version_num = version_num"))
        assert {one.name: one.stat().st_mode & 0o777 for one in path.parent.iterdir()} == {
            "service.db": 0o600,
            "service.db-wal": 0o600,
            "service.db-shm": 0o600,
        }
    assert path.parent.stat().st_mode & 0o777 == 0o700
    async with database.reading() as connection:
        body = [
            (await connection.execute(sa.text(f"PRAGMA {name}"))).scalar()
            for name in ("journal_mode", "synchronous", "foreign_keys")
        ]
    assert body == ["wal", 2, 1]
    await database.close()


async def test_writers_of_sqlite_wait_for_each_other(tmp_path: Path) -> None:
    database = Database(checked_url(None, tmp_path / "service.db"))
    await database.open()
    other = sqlite3.connect(tmp_path / "service.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    written = anyio.Event()

    async def write() -> None:
        async with database.writing() as connection:
            await connection.execute(sa.text("UPDATE alembic_version SET version_num = version_num"))
        written.set()

    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(write)
            await ping(database)  # readers do not wait
            assert not written.is_set()
            other.execute("COMMIT")
    other.close()
    await database.close()


SLOW = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT 300000) SELECT count(*) FROM c"


@pytest.mark.slow
async def test_a_cancelled_statement_leaves_no_thread_behind(tmp_path: Path) -> None:
    before = set(threading.enumerate())
    database = Database(checked_url(None, tmp_path / "service.db"))
    await database.open()
    for _ in range(3):
        with anyio.move_on_after(0.001):
            async with database.writing() as connection:
                await connection.execute(sa.text(SLOW))
    await ping(database)
    await database.close()
    left = [one for one in threading.enumerate() if one not in before and "connection_worker" in one.name]
    for thread in left:
        thread.join(5)
    assert not any(thread.is_alive() for thread in left)


async def test_a_statement_that_takes_too_long_is_an_answer_that_never_came(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "ANSWER_TIMEOUT", 0.2)
    database = Database(address(cluster.url()))
    with pytest.raises(AgentMuxError) as caught:
        async with database.reading() as connection:
            await connection.execute(sa.text("SELECT pg_sleep(60)"))
    assert caught.value.code == "UNAVAILABLE"
    monkeypatch.undo()
    await ping(database)
    await database.close()


@pytest.mark.parametrize(
    ("url", "what"),
    [
        ("nonsense", "not a URL"),
        ("mysql://localhost/x", "'mysql'"),
        ("sqlite://", "in-memory"),
        ("sqlite:///:memory:", "in-memory"),
        ("sqlite:///file::memory:?cache=shared&uri=true", "in-memory"),
        ("sqlite:///file:x?mode=memory&uri=true", "in-memory"),
    ],
)
async def test_unusable_urls_are_refused(url: str, what: str) -> None:
    with pytest.raises(AgentMuxError, match=what) as caught:
        address(url)
    assert caught.value.code == "VALIDATION_ERROR"


async def test_an_unusable_database_is_reported_without_its_password() -> None:
    database = Database(address("postgresql://somebody:hunter22@127.0.0.1:9/none"))
    with pytest.raises(AgentMuxError, match="cannot use the database ") as caught:
        await database.open()
    assert caught.value.code == "CONFIG_ERROR"
    assert "hunter22" not in caught.value.message
    await database.close()


async def test_a_missing_database_driver_is_one_line_on_stderr(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(AgentMuxError, match=r"pip install 'agent-mux\[postgres\]'"):
        Database(address("postgresql://localhost/x"))
