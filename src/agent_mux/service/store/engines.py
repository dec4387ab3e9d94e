"""Connections to the two databases, prepared in one way for the service and for its migrations."""

from typing import Any

import sqlalchemy
from sqlalchemy import event
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from agent_mux.errors import AgentMuxError

DRIVERS = {"sqlite": "sqlite+aiosqlite", "postgresql": "postgresql+psycopg", "postgres": "postgresql+psycopg"}
BUSY_TIMEOUT = 10_000  # milliseconds that a writer of SQLite waits for another
CONNECT_TIMEOUT = 5  # seconds for a connection to PostgreSQL
POOL_TIMEOUT = 5.0  # seconds for one of the connections that there are
POOL_SIZE = 8
UNACKNOWLEDGED = 10_000  # milliseconds until a server that is silent on the network is given up


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
        "tcp_user_timeout": UNACKNOWLEDGED,
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
