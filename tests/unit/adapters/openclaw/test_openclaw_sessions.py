"""The store that OpenClaw 2026.9.6 left behind; see tests/stores/README.md."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from agent_mux import validate
from agent_mux.sdk import zstandard
from agent_mux.sdk.config import AgentPaths
from agent_mux.sessions.client import Sessions
from agent_mux.sessions.summary import SessionFilter
from agent_mux_adapters.openclaw.sessions import MAX_EVENT_SIZE, STORE

DUMP = Path(__file__).parents[3] / "stores" / "openclaw" / "2026.9.6" / "openclaw-agent.sql"
LONG, TOOL_INTERRUPTED = "2ec11a17-4dfc-4d1a-83d4-d39a8bf87e18", "00a4d7dc-7030-4009-a385-75e9fea222ca"
TEXT_INTERRUPTED, FAILED = "60b9be63-438c-46da-a40b-f57b811d453e", "717e4977-54d8-4ac8-a11d-8807833da2e8"
TRANSCRIPT = "ec7bd9d5-5592-4bf6-90cd-67649d4b37f2"
"""The transcript of the failed session."""
PER_CALL = 0.000564  # USD


def zstd(data: bytes) -> bytes:
    """A frame of Zstandard with one block that could not be compressed."""
    return b"\x28\xb5\x2f\xfd" + bytes([0x20, len(data)]) + (len(data) << 3 | 1).to_bytes(3, "little") + data


PACKED = zstd(b'{"type":"message","id":"p","message":{"role":"user","content":"packed"}}')


class Unpacking:
    """A decompressor for Python versions without one."""

    def decompress(self, data: bytes, max_length: int) -> bytes:
        assert max_length == MAX_EVENT_SIZE
        if data != PACKED:
            raise EOFError
        return data[9:]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    place = tmp_path / ".openclaw" / "agents" / "main" / "agent"
    place.mkdir(parents=True)
    with database_of(tmp_path) as database:
        database.executescript(DUMP.read_text())
    return tmp_path


def database_of(home: Path) -> "closing[sqlite3.Connection]":
    path = home / ".openclaw" / "agents" / "main" / "agent" / "openclaw-agent.sqlite"
    return closing(sqlite3.connect(path, isolation_level=None))


@pytest.fixture
def sessions(home: Path) -> Iterator[Sessions]:
    skipped: list[Any] = []
    yield Sessions(environ={"HOME": str(home)}, on_skipped=skipped.append)
    assert not skipped


def add(home: Path, event: dict[str, Any] | None, zstd: bytes | None = None) -> None:
    """Add an event to the transcript of the failed session."""
    text = None if event is None else json.dumps({"timestamp": "2026-11-22T13:00:00.000Z", **event})
    with database_of(home) as database:
        [[last]] = database.execute("SELECT MAX(seq) FROM transcript_events WHERE session_id = ?", [TRANSCRIPT])
        database.execute(
            "INSERT INTO transcript_events (session_id, seq, event_json, event_zstd) VALUES (?, ?, ?, ?)",
            [TRANSCRIPT, last + 1, text, zstd],
        )


def message(role: str, content: Any, **fields: Any) -> dict[str, Any]:
    return {"type": "message", "message": {"role": role, "content": content, **fields}}


def test_every_session_is_listed_with_what_it_was(sessions: Sessions) -> None:
    found = {summary.native_id: summary for summary in sessions.list()}
    assert set(found) == {LONG, TOOL_INTERRUPTED, TEXT_INTERRUPTED, FAILED}  # as ACP knows them
    long = found[LONG]
    assert (long.id, long.title, long.cwd) == (f"openclaw:{LONG}", "First question", "/home/dev/project")
    assert (long.turn_count, long.tool_call_count, long.models) == (2, 6, ("scripted",))
    assert (long.cost.source, long.cost.input_tokens) == ("native", 700)
    assert long.cost.total_usd == pytest.approx(7 * PER_CALL)


def test_tools_have_their_results(sessions: Sessions) -> None:
    tools = [tool for message in sessions.get(LONG).messages for tool in message.tools]
    write, edit, read, shell, echo, boom = tools
    assert [tool.name for tool in tools] == ["write", "edit", "read", "exec", "echo/echo", "echo/boom"]
    assert write.input == {"path": "/home/dev/project/a.txt", "content": "one\n"}
    assert all(tool.error is None for tool in (write, edit, read, echo))
    assert (read.output, echo.input, echo.output) == ("two\n", {"text": "ping"}, "echo: ping")
    assert shell.error is not None
    assert "Exec denied" in shell.error
    assert boom.error == "boom failed"


def test_file_tools_emit_file_events(sessions: Sessions) -> None:
    events: Any = [event for event in sessions.events(LONG) if event.type.startswith("file_")]
    assert [event.type for event in events] == ["file_create", "file_patch", "file_read"]
    assert events[1].diff == "--- a/a.txt\n+++ b/a.txt\n@@ -1,1 +1,1 @@\n-one\n+two\n"


def test_an_edit_with_truncated_details_is_reported(home: Path, sessions: Sessions) -> None:
    edit = {"path": "/home/dev/project/a.txt", "edits": [{"oldText": "one\n", "newText": "two\n"}]}
    add(home, message("assistant", [{"type": "toolCall", "id": "c", "name": "edit", "arguments": edit}]))
    cut = {"persistedDetailsTruncated": True}
    done = [{"type": "text", "text": "Done."}]
    add(home, message("toolResult", done, toolCallId="c", toolName="edit", isError=False, details=cut))
    [patched] = [event for event in sessions.events(FAILED) if event.type == "file_patch"]
    assert patched.diff == "--- a/a.txt\n+++ b/a.txt\n@@ -1,1 +1,1 @@\n-one\n+two\n"


@pytest.mark.parametrize("session", [TOOL_INTERRUPTED, TEXT_INTERRUPTED])
def test_an_interrupted_turn_ends_as_aborted(session: str, sessions: Sessions) -> None:
    events: Any = [event for event in sessions.events(session) if event.type == "error"]
    assert [event.code for event in events] == ["ABORTED"]


def test_a_refusal_is_the_error_of_its_turn(sessions: Sessions) -> None:
    assert "auth_error" in [event.type for event in sessions.events(FAILED)]
    [*_, last] = sessions.get(FAILED).messages
    assert last.error is not None
    assert "401" in last.error


def test_the_events_keep_the_contract(sessions: Sessions) -> None:
    for summary in sessions.list():
        assert validate(list(sessions.events(summary.id))) == []


def test_an_abandoned_branch_is_skipped(home: Path, sessions: Sessions) -> None:
    add(home, message("user", "another question"))
    add(home, message("assistant", [{"type": "text", "text": "Of course."}], stopReason="stop"))
    with database_of(home) as database:
        database.execute("DELETE FROM session_transcript_active_events WHERE session_id = ?", [TRANSCRIPT])
        database.execute(
            "INSERT INTO session_transcript_active_events (session_id, active_position, event_seq) "
            "SELECT session_id, 0, MAX(seq) - 1 FROM transcript_events WHERE session_id = ?",
            [TRANSCRIPT],
        )
    assert [message.text for message in sessions.get(FAILED).messages] == ["another question", "Of course."]


def test_messages_of_openclaw_itself_are_skipped(home: Path, sessions: Sessions) -> None:
    add(home, message("user", "It is done.", provenance={"kind": "inter_session"}))
    add(home, message("assistant", [{"type": "text", "text": "NO_REPLY"}], stopReason="stop"))
    add(
        home,
        message("assistant", [{"type": "text", "text": "So I message."}], provider="openclaw", model="delivery-mirror"),
    )
    assert [message.text for message in sessions.get(FAILED).messages] == ["eighth question", ""]
    assert [event.type for event in sessions.events(FAILED)].count("turn_start") == 2


def test_later_messages_are_read_by_the_next_pass(home: Path) -> None:
    [found] = [found for found in STORE.find(AgentPaths(environ={"HOME": str(home)})) if found.key == TRANSCRIPT]
    cursor = STORE.open(found)
    assert type([*cursor.read()][-1].fact).__name__ == "TurnFailed"
    thought = {"type": "thinking", "thinking": "Hm."}
    add(home, message("assistant", [thought], stopReason="stop", usage={"input": 3, "output": 1}, model="small"))
    facts: list[Any] = [entry.fact for entry in cursor.read()]
    assert [type(fact).__name__ for fact in facts] == [
        "SessionDescribed",
        "StepBegin",
        "WholeThinking",
        "ModelCalled",
        "TurnDone",
    ]
    assert (facts[3].usage.input_tokens, facts[3].usd) == (3, None)


def test_a_fork_knows_its_origin(home: Path, sessions: Sessions) -> None:
    with database_of(home) as database:
        database.execute(
            "UPDATE session_nodes SET fork_source_session_key = ?, fork_source_session_id = 'x' "
            "WHERE session_key LIKE ?",
            [f"agent:main:acp-bridge:{LONG}", f"%{FAILED}"],
        )
    assert sessions.get(FAILED).summary.forked_from == f"openclaw:{LONG}"


def test_an_older_transcript_goes_by_its_own_id(home: Path, sessions: Sessions) -> None:
    with database_of(home) as database:
        database.execute("UPDATE session_nodes SET current_session_id = 'y' WHERE session_key LIKE ?", [f"%{FAILED}"])
    assert sessions.get(TRANSCRIPT).summary.turn_count == 1


@pytest.mark.parametrize("decompressor", [Unpacking, zstandard.find_decompressor()], ids=["ours", "python's"])
def test_a_compressed_event_is_read(decompressor: Any, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if decompressor is None:
        pytest.skip("this Python has no Zstandard")
    monkeypatch.setattr(zstandard, "find_decompressor", lambda: decompressor)
    add(home, None, PACKED)
    add(home, None, b"damaged")
    sessions = Sessions(environ={"HOME": str(home)})
    assert [message.text for message in sessions.get(FAILED).messages if message.role == "user"] == [
        "eighth question",
        "packed",
    ]


def test_a_compressed_event_without_zstandard_is_skipped_with_a_reason(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(zstandard, "find_decompressor", lambda: None)
    add(home, None, PACKED)
    skipped: list[Any] = []
    sessions = Sessions(environ={"HOME": str(home)}, on_skipped=skipped.append)
    assert len(sessions.list()) == 3
    assert "pip install 'agent-mux[zstd]'" in skipped[0].reason


def test_a_newer_format_is_skipped(home: Path) -> None:
    with database_of(home) as database:
        database.execute("""UPDATE transcript_events SET event_json = '{"type":"session","version":5}' WHERE seq = 0""")
    skipped: list[Any] = []
    sessions = Sessions(environ={"HOME": str(home)}, on_skipped=skipped.append)
    assert sessions.list(SessionFilter(agent="openclaw")) == []
    assert {str(found.reason) for found in skipped} == {"its events have version 5; 4 is the newest that is known"}


def test_a_variable_moves_the_store(home: Path, sessions: Sessions) -> None:
    moved = Sessions(environ={"HOME": "/nowhere", "OPENCLAW_STATE_DIR": str(home / ".openclaw")})
    assert moved.list() == sessions.list()
    copied = SessionFilter(agent="openclaw", directory=home / ".openclaw")
    assert Sessions(environ={"HOME": "/nowhere"}).list(copied) == sessions.list()
