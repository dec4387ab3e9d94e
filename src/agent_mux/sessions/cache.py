"""A cache of session summaries, so that a listing reads only the sessions that changed.

The cache is one SQLite file of agent-mux. A row is valid while the size and modification time of its session file are
unchanged. If the file is missing or damaged, all sessions are read again.
"""

import contextlib
import sqlite3
from collections.abc import Iterable
from pathlib import Path

import msgspec

from agent_mux._util.files import make_directory
from agent_mux._util.version import __version__
from agent_mux.sdk.sessions import FoundSession
from agent_mux.sessions.summary import SummarizedSession

SUMMARIES = "cache/sessions.sqlite"
"""Path of the cache, relative to the global directory."""
LAYOUT = 2
"""Version of the table and its contents. Rows of another layout or another agent-mux version are ignored."""
_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(SummarizedSession)
_Row = tuple[str, str, str, int, int, str, bytes]
_VERSION_MARK = f"{LAYOUT}/{__version__}"


class SummaryCache:
    """Stores summaries by agent, file and key."""

    def __init__(self, path: Path | None) -> None:
        """`path` is the cache file; None disables the cache."""
        self._path = path

    def load(self, agent: str) -> dict[tuple[str, str], tuple[int, int, bytes]]:
        """Return size, time and encoded summary of an agent's sessions by file and key; empty if unreadable."""
        if self._path is None or not self._path.is_file():
            return {}
        try:
            with contextlib.closing(self._open()) as database:
                rows = database.execute(
                    "SELECT path, key, size, modified, summary FROM summaries WHERE agent = ? AND mark = ?",
                    (agent, _VERSION_MARK),
                )
                return {(path, key): (size, modified, summary) for path, key, size, modified, summary in rows}
        except sqlite3.Error:
            return {}

    def store(
        self, agent: str, fresh: Iterable[tuple[FoundSession, SummarizedSession]], gone: Iterable[tuple[str, str]]
    ) -> None:
        """Add fresh summaries and delete those of files that are gone. Does nothing if the cache cannot be written."""
        rows: list[_Row] = [
            (agent, str(found.path), found.key, found.size, found.modified, _VERSION_MARK, _ENCODER.encode(summarized))
            for found, summarized in fresh
        ]
        removed = [(agent, path, key) for path, key in gone]
        if self._path is None or not (rows or removed):
            return
        try:
            self._write(rows, removed)
        except sqlite3.DatabaseError:
            with contextlib.suppress(OSError, sqlite3.Error):  # damaged: create a new file
                self._path.unlink()
                self._write(rows, removed)
        except OSError:
            return

    def _write(self, rows: list[_Row], removed: list[tuple[str, str, str]]) -> None:
        with contextlib.closing(self._open(create=True)) as database, database:
            database.execute(
                "CREATE TABLE IF NOT EXISTS summaries (agent TEXT, path TEXT, key TEXT, size INTEGER,"
                " modified INTEGER, mark TEXT, summary BLOB, PRIMARY KEY (agent, path, key)) WITHOUT ROWID"
            )
            database.executemany("DELETE FROM summaries WHERE agent = ? AND path = ? AND key = ?", removed)
            database.executemany("INSERT OR REPLACE INTO summaries VALUES (?, ?, ?, ?, ?, ?, ?)", rows)

    def _open(self, *, create: bool = False) -> sqlite3.Connection:
        assert self._path is not None  # noqa: S101  # the callers checked
        if create and not self._path.exists():
            make_directory(self._path.parent)
            self._path.touch(mode=0o600)
        return sqlite3.connect(self._path, timeout=2)


def decode(summary: bytes) -> SummarizedSession | None:
    """Return a cached summary, or None if it is damaged."""
    try:
        return _DECODER.decode(summary)
    except msgspec.MsgspecError:
        return None
