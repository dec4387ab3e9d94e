"""Connections to the two databases, prepared in one way for the service and for its migrations.

Brings the schema of a database up to date, with Alembic; its scripts are in `migrations`, inside of the package.


The connection to the database, and its schema brought up to date.

SQLite: a file of ours, 0600, in WAL mode, so that readers and the writer do not wait for each other. PostgreSQL: by
URL; connections are tried before they are used, so that a server that was restarted costs one attempt.
"""

import os
import sqlite3
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import anyio
import sqlalchemy
from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from anyio import to_thread
from sqlalchemy import event
from sqlalchemy.exc import DataError, DBAPIError, IntegrityError, NotSupportedError, ProgrammingError, SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from agent_mux._util.files import PRIVATE_FILE, make_directory
from agent_mux.errors import AgentMuxError

DRIVERS = {"sqlite": "sqlite+aiosqlite", "postgresql": "postgresql+psycopg", "postgres": "postgresql+psycopg"}
BUSY_TIMEOUT = 10_000  # milliseconds that a writer of SQLite waits for another
CONNECT_TIMEOUT = 5  # seconds for a connection to PostgreSQL
POOL_TIMEOUT = 5.0  # seconds for one of the connections that there are
POOL_SIZE = 8
TCP_USER_TIMEOUT = 10_000  # milliseconds until a server that is silent on the network is given up


def new_engine(url: sqlalchemy.URL) -> AsyncEngine:
    """For the service. Raises CONFIG_ERROR without the driver of PostgreSQL."""
    if url.get_backend_name() == "sqlite":
        engine = create_async_engine(url, pool_size=POOL_SIZE, pool_timeout=POOL_TIMEOUT)
        _prepare(engine.sync_engine, "BEGIN", foreign_keys="ON")
        return engine
    # A connection is tried before it is used: a server that was restarted costs nobody an error.
    try:
        return create_async_engine(
            url,
            pool_pre_ping=True,
            pool_size=POOL_SIZE,
            pool_timeout=POOL_TIMEOUT,
            connect_args=_postgres_arguments(url),
        )
    except ModuleNotFoundError as error:
        raise _no_driver() from error


def new_migration_engine(url: sqlalchemy.URL) -> sqlalchemy.Engine:
    """Blocking, one connection; its transactions have the whole database of SQLite for themselves."""
    if url.get_backend_name() == "sqlite":
        engine = sqlalchemy.create_engine(url.set(drivername="sqlite"), poolclass=sqlalchemy.NullPool)
        # A table is changed by making another and dropping the old one: nothing may follow that.
        _prepare(engine, "BEGIN EXCLUSIVE", foreign_keys="OFF")
        return engine
    try:
        return sqlalchemy.create_engine(url, poolclass=sqlalchemy.NullPool, connect_args=_postgres_arguments(url))
    except ModuleNotFoundError as error:
        raise _no_driver() from error


def _no_driver() -> AgentMuxError:
    return AgentMuxError("CONFIG_ERROR", "PostgreSQL needs the extra: pip install 'agent-mux[postgres]'")


def _postgres_arguments(url: sqlalchemy.URL) -> dict[str, Any]:
    arguments = {
        "connect_timeout": CONNECT_TIMEOUT,
        "tcp_user_timeout": TCP_USER_TIMEOUT,
        "application_name": "agent-mux",
    }
    return {name: value for name, value in arguments.items() if name not in url.query}


def _prepare(engine: sqlalchemy.Engine, begin: str, *, foreign_keys: str) -> None:
    """SQLite: transactions as we say, also around what changes the schema, which the driver leaves out by itself."""

    def connected(connection: Any, _: Any) -> None:
        connection.isolation_level = None
        cursor = connection.cursor()
        cursor.execute(f"PRAGMA busy_timeout={BUSY_TIMEOUT}")
        cursor.execute("PRAGMA journal_mode=WAL")
        cursor.execute("PRAGMA synchronous=FULL")
        cursor.execute(f"PRAGMA foreign_keys={foreign_keys}")
        cursor.close()

    def begun(connection: sqlalchemy.Connection) -> None:
        connection.exec_driver_sql(begin)

    event.listen(engine, "connect", connected)
    event.listen(engine, "begin", begun)


SCRIPTS = Path(__file__).parent / "migrations"
MIGRATION_LOCK = 7_232_941_120_001  # of PostgreSQL's advisory locks: any number that nobody else uses


def upgrade(url: sqlalchemy.URL) -> None:
    """Make the tables, or change them to what this version needs; nothing where they are as they should be.

    All or nothing, and several servers may begin at once. Blocking. Raises CONFIG_ERROR for a database of a newer
    version, and what the driver raises.
    """
    engine = new_migration_engine(url)
    try:
        with engine.begin() as connection:
            if connection.dialect.name == "postgresql":
                connection.execute(sqlalchemy.text(f"SELECT pg_advisory_xact_lock({MIGRATION_LOCK})"))
            _upgrade(connection)
    finally:
        engine.dispose()


def _upgrade(connection: sqlalchemy.Connection) -> None:
    config = configuration()
    config.attributes["connection"] = connection
    present = MigrationContext.configure(connection).get_current_revision()
    scripts = ScriptDirectory.from_config(config)
    if present is not None and present not in {script.revision for script in scripts.walk_revisions()}:
        newer = f"the database is of a newer agent-mux (revision {present}); use that, or another database"
        raise AgentMuxError("CONFIG_ERROR", newer)
    command.upgrade(config, "head")


def configuration() -> Config:
    """For Alembic."""
    config = Config()
    config.set_main_option("script_location", str(SCRIPTS).replace("%", "%%"))
    return config


ANSWER_TIMEOUT = 10.0  # seconds for PostgreSQL
PERMANENT_ERRORS = (DataError, ProgrammingError, NotSupportedError)
"""What was asked for cannot be, however often it is tried."""


class Database:
    """One database, which may be away for a while: then calls raise UNAVAILABLE."""

    def __init__(self, url: sqlalchemy.URL) -> None:
        """`url`: as `checked_url` gives it."""
        self._url = url
        self._engine = new_engine(url)

    @property
    def shown(self) -> str:
        """Its URL, without the password."""
        return self._url.set(drivername=self._url.get_backend_name()).render_as_string(hide_password=True)

    @property
    def is_sqlite(self) -> bool:
        """It is a file."""
        return self._url.get_backend_name() == "sqlite"

    async def open(self) -> None:
        """Make what is missing, and bring the schema up to date. Raises CONFIG_ERROR when that cannot be."""
        try:
            if self.is_sqlite and self._url.database:
                _make_private(Path(self._url.database))
            await to_thread.run_sync(upgrade, self._url)
        except (OSError, SQLAlchemyError, sqlite3.Error) as error:
            raise AgentMuxError(
                "CONFIG_ERROR", f"the database {self.shown} cannot be used: {_reason(error)}"
            ) from error

    async def close(self) -> None:
        """Leave it."""
        await self._engine.dispose()

    async def ping(self) -> None:
        """It answers. Raises UNAVAILABLE when it does not."""
        async with self.reading() as connection:
            await connection.execute(sqlalchemy.text("SELECT 1"))

    @asynccontextmanager
    async def reading(self) -> AsyncGenerator[AsyncConnection, None]:
        """A connection to read with. Raises UNAVAILABLE when the database is away."""
        with self._translated_errors():
            async with self._engine.connect() as connection:
                yield connection

    @asynccontextmanager
    async def writing(self) -> AsyncGenerator[AsyncConnection, None]:
        """A transaction, which is there as a whole or not at all. Raises UNAVAILABLE when the database is away."""
        with self._translated_errors():
            async with self._engine.begin() as connection:
                yield connection

    @contextmanager
    def _translated_errors(self) -> Generator[None, None, None]:
        """What the driver raises, in our words. Who writes knows what an `IntegrityError` means."""
        try:
            # Each connection to SQLite is a thread, and one whose statement is cancelled is never ended: it keeps the
            # process from leaving. A statement of SQLite is bounded by itself (`BUSY_TIMEOUT`): it is waited for.
            with anyio.CancelScope(shield=True) if self.is_sqlite else anyio.fail_after(ANSWER_TIMEOUT):
                yield
        except IntegrityError:
            raise
        except PERMANENT_ERRORS as error:
            refused = f"the database {self.shown} refuses a statement: {_reason(error)}; please report this"
            raise AgentMuxError("INTERNAL", refused) from error
        except (DBAPIError, sqlalchemy.exc.TimeoutError, OSError) as error:
            away = f"the database {self.shown} does not answer: {_reason(error)}; try again"
            raise AgentMuxError("UNAVAILABLE", away) from error


def checked_url(url_text: str | None, default: Path) -> sqlalchemy.URL:
    """The URL of a database; without one, that of a SQLite file. Raises VALIDATION_ERROR for one that cannot be."""
    if url_text is None:
        return sqlalchemy.URL.create(DRIVERS["sqlite"], database=str(default))
    try:
        url = sqlalchemy.make_url(url_text)
    except sqlalchemy.exc.ArgumentError as error:
        raise AgentMuxError("VALIDATION_ERROR", "the database is no URL; sqlite:///PATH or postgresql://...") from error
    backend = url.get_backend_name()
    if backend not in DRIVERS:
        raise AgentMuxError("VALIDATION_ERROR", f"no database of the kind {backend!r}; use sqlite or postgresql")
    if backend == "sqlite" and (not url.database or ":memory:" in url.database or "mode" in url.query):
        raise AgentMuxError("VALIDATION_ERROR", "a SQLite database in memory remembers nothing; sqlite:///PATH")
    return url.set(drivername=DRIVERS[backend])


def has_password(url_text: str) -> bool:
    """The URL of a database has a password in it, wherever drivers look for one."""
    try:
        url = sqlalchemy.make_url(url_text)
    except sqlalchemy.exc.ArgumentError:
        return False
    return bool(url.password) or any("password" in name.lower() for name in url.query)


def _make_private(path: Path) -> None:
    """It holds prompts: nobody else may read it, from the first moment."""
    make_directory(path.parent)
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, PRIVATE_FILE))


def _reason(error: BaseException) -> str:
    """One line, without the statement and its values, which may be secret."""
    cause = error.orig if isinstance(error, DBAPIError) and error.orig is not None else error
    return " ".join(str(cause).split()) or type(cause).__name__
