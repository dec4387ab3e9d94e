"""Summaries that were made before, so that a second listing only looks for what changed.

One SQLite file of our own. A row is good as long as the size and the time of its file are what they were. Without the
file, or with a damaged one, everything is read again: it is a cache.
"""

import contextlib
import sqlite3
from collections.abc import Iterable
from pathlib import Path

import msgspec

from agent_mux._util.version import __version__
from agent_mux.sdk.sessions import Found
from agent_mux.sessions.summary import SummarizedSession

SUMMARIES = "cache/sessions.sqlite"
"""Its usual place, in our own directory."""
LAYOUT = 1
"""Of the table and of what is in it. Rows of another layout, or of another version of us, are forgotten."""
_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(SummarizedSession)
_Row = tuple[str, str, str, int, int, str, bytes]
_MARK = f"{LAYOUT}/{__version__}"


class SummaryCache:
    """Summaries by agent, file and key."""

    def __init__(self, path: Path | None) -> None:
        """`path`: of the file; None: nothing is remembered."""
        self._path = path

    def load(self, agent: str) -> dict[tuple[str, str], tuple[int, int, bytes]]:
        """All that is known of an agent's sessions: size, time and summary. Empty where the file cannot be read."""
        if self._path is None or not self._path.is_file():
            return {}
        try:
            with contextlib.closing(self._open()) as database:
                rows = database.execute(
                    "SELECT path, key, size, modified, summary FROM summaries WHERE agent = ? AND mark = ?",
                    (agent, _MARK),
                )
                return {(path, key): (size, modified, summary) for path, key, size, modified, summary in rows}
        except sqlite3.Error:
            return {}

    def store(
        self, agent: str, fresh: Iterable[tuple[Found, SummarizedSession]], gone: Iterable[tuple[str, str]]
    ) -> None:
        """Remember these, and forget those. Does nothing where the file cannot be written."""
        rows: list[_Row] = [
            (agent, str(found.path), found.key, found.size, found.modified, _MARK, _ENCODER.encode(made))
            for found, made in fresh
        ]
        lost = [(agent, path, key) for path, key in gone]
        if self._path is None or not (rows or lost):
            return
        try:
            self._write(rows, lost)
        except sqlite3.DatabaseError:
            with contextlib.suppress(OSError, sqlite3.Error):  # damaged: begin another
                self._path.unlink()
                self._write(rows, lost)
        except OSError:
            return

    def _write(self, rows: list[_Row], lost: list[tuple[str, str, str]]) -> None:
        with contextlib.closing(self._open(create=True)) as database, database:
            database.execute(
                "CREATE TABLE IF NOT EXISTS summaries (agent TEXT, path TEXT, key TEXT, size INTEGER,"
                " modified INTEGER, mark TEXT, summary BLOB, PRIMARY KEY (agent, path, key)) WITHOUT ROWID"
            )
            database.executemany("DELETE FROM summaries WHERE agent = ? AND path = ? AND key = ?", lost)
            database.executemany("INSERT OR REPLACE INTO summaries VALUES (?, ?, ?, ?, ?, ?, ?)", rows)

    def _open(self, *, create: bool = False) -> sqlite3.Connection:
        assert self._path is not None  # noqa: S101  # the callers looked
        if create and not self._path.exists():
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._path.touch(mode=0o600)
        return sqlite3.connect(self._path, timeout=2)


def decode(summary: bytes) -> SummarizedSession | None:
    """A remembered summary; None where it is damaged."""
    try:
        return _DECODER.decode(summary)
    except msgspec.MsgspecError:
        return None
