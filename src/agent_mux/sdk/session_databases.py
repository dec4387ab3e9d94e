"""Sessions in SQLite databases of the agents: read while they are in use, and without leaving anything beside them.

SQLite makes two files beside a database in WAL mode even for a reader, and leaves them there. So a database that nobody
has open is read as one that cannot change; one with a log and an index is shared with whoever writes it; and one that
was left with a log alone, by a crash or a copy, is copied first.
"""

import contextlib
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from urllib.parse import quote

from agent_mux.sdk.session_files import hidden_text
from agent_mux.sdk.sessions import Entry, UnreadableError

BUSY = 2.0  # seconds to wait for whoever writes
LOG, INDEX = "-wal", "-shm"
"""Behind the name of a database: what it is changed in first, and an index of that."""

Rows = Callable[[sqlite3.Connection, int], Iterable[tuple[int, Iterable[Entry]]]]
"""The rows of a session behind a position, in order: the position of each, and what it says."""


@contextlib.contextmanager
def reading(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection that can only read; rows go by their names. Raises `UnreadableError`, also out of the block."""
    try:
        with _opened(path) as database:
            database.row_factory = sqlite3.Row
            database.text_factory = hidden_text
            yield database
    except sqlite3.Error as error:
        raise UnreadableError(f"the database cannot be read: {error}") from error


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection]:
    if not path.is_file():
        raise UnreadableError("there is no such file")
    log, index = (path.with_name(path.name + suffix) for suffix in (LOG, INDEX))
    if not log.exists() or not log.stat().st_size:
        with contextlib.closing(_connection(path, "mode=ro&immutable=1")) as database:
            yield database
    elif index.exists():
        with contextlib.closing(_connection(path, "mode=ro")) as database:
            yield database
    else:
        with tempfile.TemporaryDirectory(prefix="agent-mux-") as directory:
            copy = Path(directory) / path.name
            for file in (path, log):
                shutil.copyfile(file, copy.with_name(file.name))
            with contextlib.closing(_connection(copy, "mode=ro")) as database:
                yield database


def _connection(path: Path, how: str) -> sqlite3.Connection:
    # Readers are generators: another thread may go on with what one began.
    return sqlite3.connect(f"file:{quote(str(path))}?{how}", uri=True, timeout=BUSY, check_same_thread=False)


class DatabaseCursor:
    """Reads one session of a database, row by row."""

    def __init__(self, path: Path, rows: Rows, at_end: Callable[[], Iterable[Entry]] = tuple) -> None:
        """`at_end`: what is to be said where the rows end, each time that they are read so far."""
        self._path = path
        self._rows = rows
        self._at_end = at_end
        self._position = 0

    def read(self) -> Iterator[Entry]:
        """See `Cursor.read`."""
        with reading(self._path) as database:
            for position, entries in self._rows(database, self._position):
                self._position = max(self._position, position)
                yield from entries
        yield from self._at_end()
