"""Summaries are cached until their session file changes."""

import os
import sqlite3
import stat
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.unit.sessions.scripted_store import START, sessions_in, write_session

from agent_mux.sdk.session_files import JsonLinesReader


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Return a list that collects the files that are read."""
    read: list[Path] = []
    original = JsonLinesReader.read

    def counted(self: JsonLinesReader) -> Any:
        read.append(self._path)
        return original(self)

    monkeypatch.setattr(JsonLinesReader, "read", counted)
    return read


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path / "home"
    home.mkdir()
    for name in ("one", "two"):
        write_session(home, name, {"prompt": name, "at": START}, {"call": name, "model": "big", "tokens": [1, 2]})
    return home


def test_a_second_listing_reads_only_what_changed(home: Path, tmp_path: Path, reads: list[Path]) -> None:
    cache = tmp_path / "cache" / "sessions.sqlite"
    first = sessions_in(home, cache=cache).list()
    assert len(reads) == 2
    assert sessions_in(home, cache=cache).list() == first
    assert len(reads) == 2
    write_session(home, "two", {"prompt": "longer than before"})
    titles = {summary.title for summary in sessions_in(home, cache=cache).list()}
    assert titles == {"one", "longer than before"}
    assert reads[2:] == [home / "two.jsonl"]
    os.utime(home / "one.jsonl", ns=(1, 1))
    sessions_in(home, cache=cache).list()
    assert reads[3:] == [home / "one.jsonl"]


def test_costs_are_cached(home: Path, tmp_path: Path, reads: list[Path]) -> None:
    cache = tmp_path / "sessions.sqlite"
    first = sessions_in(home, cache=cache).total_cost()
    assert sessions_in(home, cache=cache).total_cost() == first
    assert len(reads) == 2


def test_removed_sessions_leave_the_cache(home: Path, tmp_path: Path) -> None:
    cache = tmp_path / "sessions.sqlite"
    sessions_in(home, cache=cache).list()
    (home / "two.jsonl").unlink()
    assert [summary.native_id for summary in sessions_in(home, cache=cache).list()] == ["one"]
    with closing(sqlite3.connect(cache)) as database, database:
        assert database.execute("SELECT count(*) FROM summaries").fetchone() == (1,)


def test_the_cache_file_is_private(home: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache" / "sessions.sqlite"
    sessions_in(home, cache=cache).list()
    assert stat.S_IMODE(cache.stat().st_mode) == 0o600
    assert stat.S_IMODE(cache.parent.stat().st_mode) == 0o700


def test_a_damaged_cache_is_rebuilt(home: Path, tmp_path: Path, reads: list[Path]) -> None:
    cache = tmp_path / "sessions.sqlite"
    cache.write_bytes(b"this is no database" * 100)
    assert len(sessions_in(home, cache=cache).list()) == 2
    assert len(sessions_in(home, cache=cache).list()) == 2
    assert len(reads) == 2  # it was replaced
    with closing(sqlite3.connect(cache)) as database, database:
        database.execute("UPDATE summaries SET summary = x'00'")
    assert len(sessions_in(home, cache=cache).list()) == 2
    assert len(reads) == 4


def test_a_cache_that_cannot_be_written_is_ignored(home: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert len(sessions_in(home, cache=tmp_path / "file" / "sessions.sqlite").list()) == 2
    (tmp_path / "sessions.sqlite").mkdir()
    assert len(sessions_in(home, cache=tmp_path / "sessions.sqlite").list()) == 2


def test_another_version_ignores_the_cache(
    home: Path, tmp_path: Path, reads: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path / "sessions.sqlite"
    sessions_in(home, cache=cache).list()
    monkeypatch.setattr("agent_mux.sessions.cache._VERSION_MARK", "other")
    assert len(sessions_in(home, cache=cache).list()) == 2
    assert len(reads) == 4
