"""Read sessions from the SQLite databases of agents, also while they are in use, without leaving files behind.

Even for a reader, SQLite creates two files beside a database in WAL mode and leaves them there. Therefore a database
without a log is opened as immutable; one with a log and an index is shared with its writer; one with only a log, left
by a crash or a copy, is copied first.
"""

import contextlib
import shutil
import sqlite3
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from urllib.parse import quote

from agent_mux.sdk.session_files import redact_to_text
from agent_mux.sdk.sessions import SessionEntry, UnreadableSessionError

NS_PER_MS = 1_000_000
BUSY_TIMEOUT = 2.0  # seconds to wait for a writer
LOG_SUFFIX, INDEX_SUFFIX = "-wal", "-shm"
"""Suffixes of the files beside a database: the write-ahead log and its index."""

RowReader = Callable[[sqlite3.Connection, int], Iterable[tuple[int, Iterable[SessionEntry]]]]
"""Returns the rows of a session after a position, in order: the position of each row and its entries."""


def modified_at(milliseconds: int, title: str) -> int:
    """Return `FoundSession.modified` of a session whose agent leaves its time as it is when the title changes.

    The digits below a millisecond distinguish titles, so that a cached summary is not used after a rename.
    """
    return milliseconds * NS_PER_MS + zlib.crc32(title.encode("utf-8", "surrogateescape")) % NS_PER_MS


@contextlib.contextmanager
def open_database(path: Path) -> Iterator[sqlite3.Connection]:
    """Open a database read-only, with rows accessible by column name.

    Raises `UnreadableSessionError`, also from the block.
    """
    try:
        with _open(path) as database:
            database.row_factory = sqlite3.Row
            database.text_factory = redact_to_text
            yield database
    except sqlite3.Error as error:
        raise UnreadableSessionError(f"the database cannot be read: {error}") from error


@contextlib.contextmanager
def _open(path: Path) -> Iterator[sqlite3.Connection]:
    if not path.is_file():
        raise UnreadableSessionError("there is no such file")
    log, index = (path.with_name(path.name + suffix) for suffix in (LOG_SUFFIX, INDEX_SUFFIX))
    if not log.exists() or not log.stat().st_size:
        with contextlib.closing(_connect(path, "mode=ro&immutable=1")) as database:
            yield database
    elif index.exists():
        with contextlib.closing(_connect(path, "mode=ro")) as database:
            yield database
    else:
        with tempfile.TemporaryDirectory(prefix="agent-mux-") as directory:
            copy = Path(directory) / path.name
            for file in (path, log):
                shutil.copyfile(file, copy.with_name(file.name))
            with contextlib.closing(_connect(copy, "mode=ro")) as database:
                yield database


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    # Readers are generators, which another thread may continue.
    return sqlite3.connect(f"file:{quote(str(path))}?{mode}", uri=True, timeout=BUSY_TIMEOUT, check_same_thread=False)


class DatabaseReader:
    """Reads one session of a database by rows; implements `Cursor`."""

    def __init__(self, path: Path, rows: RowReader, at_end: Callable[[], Iterable[SessionEntry]] = tuple) -> None:
        """Read the rows that `rows` returns; `at_end` returns further entries whenever the last row was read."""
        self._path = path
        self._rows = rows
        self._at_end = at_end
        self._position = 0

    def read(self) -> Iterator[SessionEntry]:
        """Yield the entries of rows that were not read yet, see `Cursor.read`."""
        with open_database(self._path) as database:
            for position, entries in self._rows(database, self._position):
                self._position = max(self._position, position)
                yield from entries
        yield from self._at_end()
