"""Agents' databases are read while they are in use, without changing them or leaving files beside them."""

import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_mux.sdk import facts
from agent_mux.sdk.session_databases import DatabaseReader, open_database
from agent_mux.sdk.sessions import SessionEntry, UnreadableSessionError


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    """Return the connection of an agent that has its database open."""
    database = sqlite3.connect(tmp_path / "own ed%20ition.db")
    database.execute("PRAGMA journal_mode = wal")
    database.execute("CREATE TABLE messages (id INTEGER PRIMARY KEY, text TEXT)")
    database.execute("INSERT INTO messages (text) VALUES ('one')")
    database.commit()
    yield database
    database.close()


def path_of(database: sqlite3.Connection) -> Path:
    return Path(database.execute("PRAGMA database_list").fetchone()[2])


def texts(path: Path) -> list[str]:
    with open_database(path) as database:
        return [row["text"] for row in database.execute("SELECT text FROM messages ORDER BY id")]


def state(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir() if not path.name.endswith("-shm")}


def test_a_database_in_use_is_read_up_to_its_last_commit(writer: sqlite3.Connection) -> None:
    path = path_of(writer)
    assert texts(path) == ["one"]
    writer.execute("INSERT INTO messages (text) VALUES ('two')")
    writer.commit()
    before = state(path.parent)
    assert texts(path) == ["one", "two"]
    assert state(path.parent) == before
    writer.execute("INSERT INTO messages (text) VALUES ('three')")  # the writer was not locked out
    writer.commit()


def test_reading_a_closed_database_leaves_no_files(writer: sqlite3.Connection) -> None:
    path = path_of(writer)
    writer.close()
    before = sorted(path.parent.iterdir())
    assert texts(path) == ["one"]
    assert sorted(path.parent.iterdir()) == before == [path]


def test_a_write_ahead_log_left_by_a_crash_is_read(writer: sqlite3.Connection, tmp_path: Path) -> None:
    path = path_of(writer)
    crashed = tmp_path / "crashed"
    crashed.mkdir()
    for suffix in ("", "-wal"):
        shutil.copy(f"{path}{suffix}", crashed / f"a.db{suffix}")
    before = state(crashed)
    assert texts(crashed / "a.db") == ["one"]
    assert state(crashed) == before
    assert sorted(file.name for file in crashed.iterdir()) == ["a.db", "a.db-wal"]


def test_the_database_is_read_only(writer: sqlite3.Connection) -> None:
    with pytest.raises(UnreadableSessionError, match="readonly"), open_database(path_of(writer)) as database:
        database.execute("DELETE FROM messages")


@pytest.mark.parametrize("content", [None, b"", b"no database at all" * 100])
def test_an_invalid_database_is_unreadable(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "a.db"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UnreadableSessionError, match=r"no such file|no such table|not a database"):
        texts(path)


def test_a_cursor_continues_after_the_last_row(writer: sqlite3.Connection) -> None:
    def rows(database: sqlite3.Connection, after: int) -> Iterator[tuple[int, list[SessionEntry]]]:
        for row in database.execute("SELECT * FROM messages WHERE id > ? ORDER BY id", (after,)):
            yield row["id"], [SessionEntry(None, facts.WholeText(row["text"]))]

    cursor = DatabaseReader(path_of(writer), rows)
    assert [entry.fact for entry in cursor.read()] == [facts.WholeText("one")]
    assert list(cursor.read()) == []
    writer.execute("INSERT INTO messages (text) VALUES ('two')")
    writer.commit()
    assert [entry.fact for entry in cursor.read()] == [facts.WholeText("two")]
