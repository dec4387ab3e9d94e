"""Secrets in an agent's store are hidden in everything that is read from it."""

import sqlite3
from pathlib import Path

import pytest
from tests.unit.sessions.scripted_store import START, sessions_in, write_session

from agent_mux import encode_event
from agent_mux.sdk import session_files
from agent_mux.sdk.session_databases import open_database
from agent_mux.sessions.export import Format

KEY = "sk-ant-api03-" + "Zq7Lw9" * 8


def forget() -> None:
    session_files._environment_redactor.cache_clear()


def test_a_key_in_a_session_is_hidden_everywhere(tmp_path: Path) -> None:
    write_session(
        tmp_path, "one",
        {"prompt": f"use {KEY}", "at": START}, {"text": f"I use {KEY}"}, {"tool": "Env", "input": {"key": KEY}},
        {"result": "Env", "output": {"printed": f"KEY={KEY}\n"}},
    )  # fmt: skip
    sessions = sessions_in(tmp_path, cache=tmp_path / "cache" / "sessions.sqlite")
    forms: tuple[Format, ...] = ("json", "jsonl", "markdown", "html")
    shown = [sessions.export("one", form) for form in forms]
    shown += [str(sessions.list()), str(sessions.search("use")), str(sessions.get("one"))]
    shown += [encode_event(event).decode() for event in sessions.events("one")]
    assert not [text for text in shown if KEY in text or KEY[:30] in text]
    assert "use sk-ant-*" in sessions.get("one").messages[0].text
    assert KEY.encode() not in (tmp_path / "cache" / "sessions.sqlite").read_bytes()
    assert KEY in (tmp_path / "one.jsonl").read_text()  # the agent's own file is unchanged


def test_a_key_in_a_database_is_hidden(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE messages (text TEXT)")
        database.execute("INSERT INTO messages VALUES (?), (CAST(x'FF61' AS TEXT))", (f'{{"key": "{KEY}"}}',))
    database.close()
    with open_database(path) as database:
        key, damaged = (row["text"] for row in database.execute("SELECT text FROM messages"))
    assert KEY not in key
    assert len(key) == len(f'{{"key": "{KEY}"}}')
    assert damaged == "\ufffda"


def test_secrets_in_the_environment_are_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_SECRET_TOKEN", "correct-horse-9-battery")
    forget()
    try:
        assert session_files.redact_bytes(b'{"a": "correct-horse-9-battery"}').count(b"*") > 10
    finally:
        monkeypatch.undo()
        forget()
