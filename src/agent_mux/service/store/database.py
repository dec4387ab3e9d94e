"""The connection to the database, and its schema brought up to date with Alembic (scripts in `migrations`).

SQLite: a file with mode 0600 in WAL mode, so that readers and the writer do not wait for each other. PostgreSQL: by
URL; connections are tested before use, so that a restart of the server causes no error.
"""

import os
import sqlite3
from collections.abc import AsyncGenerator, Generator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, closing, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import anyio
import sqlalchemy
from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from anyio import to_thread
from sqlalchemy import event
from sqlalchemy.exc import DataError, DBAPIError, IntegrityError, NotSupportedError, ProgrammingError, SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from agent_mux._util.files import PRIVATE_FILE, make_directory
from agent_mux.errors import AgentMuxError, MissingExtraError
from agent_mux.service.store.tables import METADATA

DRIVERS = {"sqlite": "sqlite+aiosqlite", "postgresql": "postgresql+psycopg", "postgres": "postgresql+psycopg"}
BUSY_TIMEOUT = 10_000  # milliseconds that an SQLite writer waits for another one
CONNECT_TIMEOUT = 5  # seconds for a connection to PostgreSQL
POOL_TIMEOUT = 5.0  # seconds to wait for a free connection
POOL_SIZE = 8
TCP_USER_TIMEOUT = 10_000  # milliseconds without an acknowledgement until a connection is dropped
SCRIPTS = Path(__file__).parent / "migrations"
MIGRATION_LOCK = 7_232_941_120_001  # an arbitrary number for PostgreSQL's advisory lock
ANSWER_TIMEOUT = 10.0  # seconds for PostgreSQL
_DAMAGES = ("malformed", "not a database", "no such table", "no such column", "decode to utf-8", "corrupt")
"""Words of SQLite about a file that was overwritten or replaced."""
_MISSING_TABLE_OR_COLUMN = frozenset({"42P01", "42703"})
"""SQLSTATE codes of PostgreSQL."""
PERMANENT_ERRORS = (DataError, ProgrammingError, NotSupportedError)
"""Errors that no retry fixes."""


def new_engine(url: sqlalchemy.URL) -> AsyncEngine:
    """Return the engine of the service. Raises CONFIG_ERROR when the PostgreSQL driver is missing."""
    if url.get_backend_name() == "sqlite":
        engine = create_async_engine(url, pool_size=POOL_SIZE, pool_timeout=POOL_TIMEOUT)
        _prepare(engine.sync_engine, "BEGIN", foreign_keys="ON")
        return engine
    # `pool_pre_ping` tests a connection before use, so that a restart of the server causes no error.
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
    """Return a blocking engine with one connection, whose transactions lock a whole SQLite database."""
    if url.get_backend_name() == "sqlite":
        engine = sqlalchemy.create_engine(url.set(drivername="sqlite"), poolclass=sqlalchemy.NullPool)
        # Altering a table creates a new one and drops the old one, which must not cascade.
        _prepare(engine, "BEGIN EXCLUSIVE", foreign_keys="OFF")
        return engine
    try:
        return sqlalchemy.create_engine(url, poolclass=sqlalchemy.NullPool, connect_args=_postgres_arguments(url))
    except ModuleNotFoundError as error:
        raise _no_driver() from error


def _no_driver() -> AgentMuxError:
    return MissingExtraError("PostgreSQL", "postgres", code="CONFIG_ERROR")


def _postgres_arguments(url: sqlalchemy.URL) -> dict[str, Any]:
    arguments = {
        "connect_timeout": CONNECT_TIMEOUT,
        "tcp_user_timeout": TCP_USER_TIMEOUT,
        "application_name": "agent-mux",
    }
    return {name: value for name, value in arguments.items() if name not in url.query}


def _prepare(engine: sqlalchemy.Engine, begin: str, *, foreign_keys: str) -> None:
    """Configure SQLite connections to begin transactions explicitly: the driver begins none around schema changes."""

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


def upgrade(url: sqlalchemy.URL) -> None:
    """Create the tables or migrate them to this version's schema. Blocking.

    It either completes or changes nothing; several servers may start at once. Raises CONFIG_ERROR for the database of a
    newer version, and whatever the driver raises.
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
        newer = f"a newer agent-mux created the database (revision {present}); use that version or another database"
        raise AgentMuxError("CONFIG_ERROR", newer)
    command.upgrade(config, "head")
    _check_tables(connection)


def _check_tables(connection: sqlalchemy.Connection) -> None:
    """Check that a database which has the current revision has its tables. Raises CONFIG_ERROR."""
    inspector = sqlalchemy.inspect(connection)
    present = {name: {one["name"] for one in inspector.get_columns(name)} for name in inspector.get_table_names()}
    for table in METADATA.sorted_tables:
        missing = {column.name for column in table.columns} - present.get(table.name, set())
        if missing:
            lacks = f"table {table.name} lacks {', '.join(sorted(missing))}"
            raise AgentMuxError("CONFIG_ERROR", f"the database is damaged or was replaced: {lacks}; {_REMEDY}")


def configuration() -> Config:
    """Return the configuration of Alembic."""
    config = Config()
    config.set_main_option("script_location", str(SCRIPTS).replace("%", "%%"))
    return config


_REMEDY = "restore it from a backup, or use another database; the recordings of runs are files of their own"


class Database:
    """One database. Its calls raise UNAVAILABLE while it is unreachable."""

    def __init__(self, url: sqlalchemy.URL, directory: Path | None = None) -> None:
        """`url`: a return value of `checked_url`. `directory`: that of the service that uses the database, if any."""
        self.directory = directory
        self._url = url
        self._engine = new_engine(url)
        self._file: os.stat_result | None = None
        """The file of an SQLite database when it was opened."""
        # SQLite has one writer at a time, and does not serve waiting ones in order: with many, some would give up.
        self._writer: AbstractAsyncContextManager[Any] = anyio.Lock() if self.is_sqlite else nullcontext()

    @property
    def shown(self) -> str:
        """The URL without the password."""
        return self._url.set(drivername=self._url.get_backend_name()).render_as_string(hide_password=True)

    @property
    def is_sqlite(self) -> bool:
        """Whether the database is a file."""
        return self._url.get_backend_name() == "sqlite"

    @property
    def is_missing(self) -> bool:
        """Whether the file of an SQLite database does not exist, or is empty."""
        try:
            found = self._stat()
        except OSError:
            return True
        return found is not None and not found.st_size

    def is_inside(self, directory: Path) -> bool:
        """Return whether the database is a file in this directory."""
        path = self._url.database
        return self.is_sqlite and path is not None and Path(path).resolve().is_relative_to(directory.resolve())

    async def open(self) -> None:
        """Create and migrate the database as needed. Raises CONFIG_ERROR on failure."""
        try:
            if self.is_sqlite and self._url.database:
                _make_private(Path(self._url.database))
            await to_thread.run_sync(upgrade, self._url)
            self._file = self._stat()
        except (OSError, SQLAlchemyError, sqlite3.Error, CommandError, UnicodeDecodeError) as error:
            remedy = f"; {_REMEDY}" if _is_damage(error) else ""
            reason = f"cannot use the database {self.shown}: {_reason(error)}{remedy}"
            raise AgentMuxError("CONFIG_ERROR", reason) from error

    async def close(self) -> None:
        """Close all connections of the pool."""
        await self._engine.dispose()

    def _stat(self) -> os.stat_result | None:
        return Path(self._url.database).stat() if self.is_sqlite and self._url.database else None

    async def check_file(self) -> None:
        """Check that the file of an SQLite database is still the one that is open, and a database. Raises UNAVAILABLE.

        SQLite keeps writing to a file that was removed, replaced or overwritten, and all of that is lost.
        """
        self.require_file()
        if self._file is not None:
            with self._translated_errors():
                await to_thread.run_sync(self._read_schema)

    def require_file(self) -> None:
        """Check the file of an SQLite database without reading it: its identity and its size. Raises UNAVAILABLE.

        It takes microseconds, so that every transaction begins with it.
        """
        if self._file is None:
            return
        try:
            found = self._stat()
        except OSError:
            found = None
        if found is None or not os.path.samestat(found, self._file):
            problem = f"the file of the database {self.shown} was removed or replaced while it was in use"
        elif not found.st_size:
            problem = f"the database {self.shown} is damaged or was replaced: its file was emptied while it was in use"
        else:
            return
        raise AgentMuxError("UNAVAILABLE", f"{problem}; stop the service and {_REMEDY}", recoverable=False)

    def _read_schema(self) -> None:
        """Read the first page by a new connection; open ones have it in memory. Raises like a statement."""
        try:
            path = Path(str(self._url.database)).absolute()
            with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, timeout=ANSWER_TIMEOUT)) as connection:
                connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        except sqlite3.Error as error:
            raise DBAPIError("SELECT count(*) FROM sqlite_master", None, error) from error

    @asynccontextmanager
    async def reading(self) -> AsyncGenerator[AsyncConnection, None]:
        """Open a connection for reading. Raises UNAVAILABLE."""
        self.require_file()
        with self._translated_errors():
            async with self._engine.connect() as connection:
                yield connection

    @asynccontextmanager
    async def writing(self) -> AsyncGenerator[AsyncConnection, None]:
        """Open a transaction, which is committed unless the block raises. Raises UNAVAILABLE."""
        self.require_file()
        async with self._writer:
            with self._translated_errors():
                async with self._engine.begin() as connection:
                    yield connection

    @contextmanager
    def _translated_errors(self) -> Generator[None, None, None]:
        """Turn driver errors into `AgentMuxError`. `IntegrityError` passes: callers interpret it."""
        try:
            # Each SQLite connection is a thread. Cancelling its statement would leave the thread running and keep the
            # process from exiting. SQLite statements are bounded by `BUSY_TIMEOUT`, so they are awaited.
            with anyio.CancelScope(shield=True) if self.is_sqlite else anyio.fail_after(ANSWER_TIMEOUT):
                yield
        except IntegrityError:
            raise
        except (DBAPIError, UnicodeDecodeError) as error:
            if _is_damage(error):
                damaged = f"the database {self.shown} is damaged or was replaced: {_reason(error)}"
                message = f"{damaged}; stop the service and {_REMEDY}"
                raise AgentMuxError("UNAVAILABLE", message, recoverable=False) from error
            if not isinstance(error, PERMANENT_ERRORS):
                raise self._unanswered(error) from error
            refused = f"the database {self.shown} rejected a statement: {_reason(error)}; please report this"
            raise AgentMuxError("INTERNAL", refused) from error
        except (sqlalchemy.exc.TimeoutError, OSError) as error:
            raise self._unanswered(error) from error

    def _unanswered(self, error: BaseException) -> AgentMuxError:
        return AgentMuxError("UNAVAILABLE", f"the database {self.shown} does not answer: {_reason(error)}; try again")


def checked_url(url_text: str | None, default: Path) -> sqlalchemy.URL:
    """Return the URL of the database; None means the SQLite file `default`.

    Raises VALIDATION_ERROR for an unusable one.
    """
    if url_text is None:
        return sqlalchemy.URL.create(DRIVERS["sqlite"], database=str(default))
    try:
        url = sqlalchemy.make_url(url_text)
    except sqlalchemy.exc.ArgumentError as error:
        raise AgentMuxError(
            "VALIDATION_ERROR", "the database is not a URL; use sqlite:///PATH or postgresql://..."
        ) from error
    backend = url.get_backend_name()
    if backend not in DRIVERS:
        raise AgentMuxError("VALIDATION_ERROR", f"unsupported database {backend!r}; use sqlite or postgresql")
    if backend == "sqlite" and (not url.database or ":memory:" in url.database or "mode" in url.query):
        raise AgentMuxError("VALIDATION_ERROR", "an in-memory SQLite database is not persistent; use sqlite:///PATH")
    return url.set(drivername=DRIVERS[backend])


def has_password(url_text: str) -> bool:
    """Return whether the URL of a database contains a password, wherever drivers look for one."""
    try:
        url = sqlalchemy.make_url(url_text)
    except sqlalchemy.exc.ArgumentError:
        return False
    return bool(url.password) or any("password" in name.lower() for name in url.query)


def _make_private(path: Path) -> None:
    """Create the file readable for its owner only, before anything is written: it contains prompts."""
    make_directory(path.parent)
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, PRIVATE_FILE))


def _is_damage(error: BaseException) -> bool:
    """Return whether the content of the database is not what this program wrote."""
    cause = error.orig if isinstance(error, DBAPIError) else error
    if isinstance(cause, UnicodeDecodeError) or getattr(cause, "sqlstate", None) in _MISSING_TABLE_OR_COLUMN:
        return True
    return isinstance(cause, sqlite3.Error) and any(words in str(cause).lower() for words in _DAMAGES)


def _reason(error: BaseException) -> str:
    """Return one line without the statement and its values, which may be secret."""
    cause = error.orig if isinstance(error, DBAPIError) and error.orig is not None else error
    return " ".join(str(cause).split()) or type(cause).__name__
