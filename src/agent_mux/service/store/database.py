"""The connection to the database, and its schema brought up to date.

SQLite: a file of ours, 0600, in WAL mode, so that readers and the writer do not wait for each other. PostgreSQL: by
URL; connections are tried before they are used, so that a server that was restarted costs one attempt.
"""

import os
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import sqlalchemy
from anyio import to_thread
from sqlalchemy import event
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from agent_mux.errors import AgentMuxError
from agent_mux.service.store.migrating import upgrade
from agent_mux.storage import PRIVATE_FILE, make_directory

BUSY_TIMEOUT = 10_000  # milliseconds that a writer of SQLite waits for another
CONNECT_TIMEOUT = 5  # seconds for a connection to PostgreSQL
POOL_TIMEOUT = 5.0  # seconds for one of the connections that there are
POOL_SIZE = 8
DRIVERS = {"sqlite": "sqlite+aiosqlite", "postgresql": "postgresql+psycopg", "postgres": "postgresql+psycopg"}


class Database:
    """One database, which may be away for a while: then calls raise UNAVAILABLE."""

    def __init__(self, url: sqlalchemy.URL) -> None:
        """`url`: as `checked_url` gives it."""
        self._url = url
        self._engine = _engine(url)

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
    async def reading(self) -> AsyncIterator[AsyncConnection]:
        """A connection to read with. Raises UNAVAILABLE when the database is away."""
        with _told(self.shown):
            async with self._engine.connect() as connection:
                yield connection

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[AsyncConnection]:
        """A transaction, which is there as a whole or not at all. Raises UNAVAILABLE when the database is away."""
        with _told(self.shown):
            async with self._engine.begin() as connection:
                yield connection


class _told:  # noqa: N801  # reads as a word where it is used
    """What the driver raises when the database is away, in our words."""

    def __init__(self, shown: str) -> None:
        self._shown = shown

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        if isinstance(error, sqlalchemy.exc.IntegrityError):
            return  # whoever writes knows what that means
        if isinstance(error, DBAPIError | sqlalchemy.exc.TimeoutError | OSError):
            away = f"the database {self._shown} does not answer: {_reason(error)}; try again"
            raise AgentMuxError("UNAVAILABLE", away) from error


def checked_url(said: str | None, default: Path) -> sqlalchemy.URL:
    """The URL of a database; without one, that of a SQLite file. Raises VALIDATION_ERROR for one that cannot be."""
    if said is None:
        return sqlalchemy.URL.create(DRIVERS["sqlite"], database=str(default))
    try:
        url = sqlalchemy.make_url(said)
    except sqlalchemy.exc.ArgumentError as error:
        raise AgentMuxError("VALIDATION_ERROR", "the database is no URL; sqlite:///PATH or postgresql://...") from error
    backend = url.get_backend_name()
    if backend not in DRIVERS:
        raise AgentMuxError("VALIDATION_ERROR", f"no database of the kind {backend!r}; use sqlite or postgresql")
    if backend == "sqlite" and not url.database:
        raise AgentMuxError("VALIDATION_ERROR", "a SQLite database in memory remembers nothing; sqlite:///PATH")
    return url.set(drivername=DRIVERS[backend])


def has_password(said: str) -> bool:
    """The URL of a database has a password in it, wherever drivers look for one."""
    try:
        url = sqlalchemy.make_url(said)
    except sqlalchemy.exc.ArgumentError:
        return False
    return bool(url.password) or any("password" in name.lower() for name in url.query)


def _engine(url: sqlalchemy.URL) -> AsyncEngine:
    if url.get_backend_name() == "sqlite":
        engine = create_async_engine(url, pool_size=POOL_SIZE, pool_timeout=POOL_TIMEOUT)
        event.listen(engine.sync_engine, "connect", _prepare_sqlite)
        return engine
    return create_async_engine(
        url,
        pool_pre_ping=True,
        pool_size=POOL_SIZE,
        pool_timeout=POOL_TIMEOUT,
        connect_args={"connect_timeout": CONNECT_TIMEOUT},
    )


def _prepare_sqlite(connection: Any, _: Any) -> None:
    cursor = connection.cursor()
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", f"busy_timeout={BUSY_TIMEOUT}"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _make_private(path: Path) -> None:
    """It holds prompts: nobody else may read it, from the first moment."""
    make_directory(path.parent)
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, PRIVATE_FILE))


def _reason(error: BaseException) -> str:
    """One line, without the statement and its values, which may be secret."""
    cause = error.orig if isinstance(error, DBAPIError) and error.orig is not None else error
    return " ".join(str(cause).split()) or type(cause).__name__
