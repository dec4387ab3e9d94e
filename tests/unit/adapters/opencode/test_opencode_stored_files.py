"""Sessions of OpenCode up to 1.1: one JSON file for each session, message and part."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from agent_mux import validate
from agent_mux.sessions.client import Sessions
from agent_mux.sessions.library import SkippedFile

STORES = Path(__file__).parents[3] / "stores"
DUMP = STORES / "opencode" / "1.18.33" / "opencode.sql"


class Data:
    """OpenCode's data directory with one session of two messages."""

    def __init__(self, path: Path) -> None:
        self.path = path / ".local" / "share" / "opencode"
        self.skipped: list[SkippedFile] = []
        self.sessions = Sessions(environ={"HOME": str(path)}, on_skipped=self.skipped.append)

    def write(self, place: str, **fields: Any) -> Path:
        path = self.path / "storage" / f"{place}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"id": path.stem, **fields}))
        return path

    def session(self, name: str = "ses_a", **fields: Any) -> Path:
        return self.write(f"session/p/{name}", directory="/w", title="Named", version="1.1.53", **fields)

    def prompt(self, text: str, name: str = "msg_1", session: str = "ses_a") -> None:
        self.write(f"message/{session}/{name}", role="user", time={"created": created(name)})
        self.write(f"part/{name}/prt_{name}", type="text", text=text)

    def answer(self, text: str, name: str = "msg_2", session: str = "ses_a", *parts: dict[str, Any]) -> None:
        at = created(name)
        self.write(
            f"message/{session}/{name}", role="assistant", time={"created": at, "completed": at + 5}, finish="stop",
            providerID="p", modelID="m", tokens={"input": 10, "output": 2},
        )  # fmt: skip
        self.write(f"part/{name}/prt_{name}", type="text", text=text, time={"start": at, "end": at + 1})
        for number, part in enumerate(parts):
            self.write(f"part/{name}/prt_{name}_{number}", **part)

    def texts(self) -> list[str]:
        [summary] = self.sessions.list()
        assert validate(list(self.sessions.events(summary.id))) == []
        return [message.text for message in self.sessions.get(summary.id).messages]


def created(name: str) -> int:
    return 1_795_000_000_000 + 1000 * int(name.rpartition("_")[2])


@pytest.fixture
def data(tmp_path: Path) -> Data:
    return Data(tmp_path)


def test_messages_are_read_in_the_order_of_their_times(data: Data) -> None:
    data.session()
    data.prompt("later", "msg_3")
    data.answer("Later.", "msg_4")
    data.prompt("first", "msg_1")
    data.answer("First.", "msg_2")
    assert data.texts() == ["first", "First.", "later", "Later."]


def test_session_of_a_subagent_is_part_of_its_parent(data: Data) -> None:
    task = {"type": "tool", "tool": "task", "callID": "c", "state": {
        "status": "completed", "input": {"prompt": "look", "subagent_type": "general"}, "output": "seen",
        "metadata": {"sessionId": "ses_b"},
    }}  # fmt: skip
    data.session()
    data.prompt("go")
    data.answer("Done.", "msg_2", "ses_a", task)
    data.session("ses_b", parentID="ses_a")
    data.prompt("look", "msg_11", "ses_b")
    data.answer("Seen.", "msg_12", "ses_b")
    [summary] = data.sessions.list()
    assert (summary.native_id, summary.cost.input_tokens) == ("ses_a", 20)
    assert data.skipped == []


def test_session_in_the_database_replaces_its_files(data: Data) -> None:
    data.path.mkdir(parents=True)
    with closing(sqlite3.connect(data.path / "opencode.db")) as database:
        database.executescript(DUMP.read_text())
    before = {summary.id: summary.path for summary in data.sessions.list()}
    copied = next(iter(before)).partition(":")[2]
    data.session(copied)
    data.prompt("copied", "msg_1", copied)
    data.session()
    data.prompt("not copied")
    listed = {summary.id: summary.path for summary in data.sessions.list()}
    assert listed == {**before, "opencode:ses_a": str(data.path / "storage" / "session" / "p" / "ses_a.json")}


def test_unreadable_database_does_not_hide_files(data: Data) -> None:
    data.session()
    data.prompt("hello")
    (data.path / "opencode.db").write_bytes(b"no database" * 100)
    assert data.texts() == ["hello"]
    assert "the database cannot be read" in data.skipped[0].reason


def test_change_of_a_message_changes_the_listing(data: Data, tmp_path: Path) -> None:
    data.session()
    data.prompt("go")
    sessions = Sessions(environ={"HOME": str(tmp_path)}, cache=tmp_path / "cache")
    assert sessions.list()[0].message_count == 1
    data.answer("Done.")
    assert sessions.list()[0].message_count == 2


def test_reverted_message_is_left_out(data: Data) -> None:
    data.session(revert={"messageID": "msg_3"})
    data.prompt("kept")
    data.answer("Kept.")
    data.prompt("reverted", "msg_3")
    assert data.texts() == ["kept", "Kept."]


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff\xfe", b'{"id": 5}'])
def test_damaged_files_are_named_or_left_out(data: Data, content: bytes) -> None:
    path = data.session()
    data.prompt("hello")
    data.answer("Hi.")
    (data.path / "storage" / "message" / "ses_a" / "msg_2.json").write_bytes(content)
    assert data.texts()[0] == "hello"
    path.write_bytes(content)
    for summary in data.sessions.list():
        assert validate(list(data.sessions.events(summary.id))) == []
    assert not [one for one in data.skipped if "adapter failed" in one.reason]


def test_ids_in_files_lead_to_no_other_directory(data: Data) -> None:
    data.session()
    data.write("message/ses_a/msg_1", role="user", time={"created": created("msg_1")})
    (data.path / "storage" / "message" / "ses_a" / "msg_1.json").write_text(
        json.dumps({"id": "../../secret", "role": "user", "time": {"created": created("msg_1")}})
    )
    secret = data.path / "secret" / "prt_1.json"
    secret.parent.mkdir()
    secret.write_text(json.dumps({"id": "prt_1", "type": "text", "text": "secret"}))
    assert data.sessions.search("secret") == []


def test_session_in_the_first_format_is_named(data: Data) -> None:
    path = data.path / "project" / "w" / "storage" / "session" / "info" / "ses_a.json"
    path.parent.mkdir(parents=True)
    path.write_text("{}")
    listing = data.sessions.list()
    assert [(one.path, "before 0.6" in one.reason) for one in listing.skipped] == [(str(path), True)]
