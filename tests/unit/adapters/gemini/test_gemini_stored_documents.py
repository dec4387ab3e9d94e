"""Sessions of Gemini CLI up to 0.36: one JSON object each, which is rewritten after every message."""

import json
from pathlib import Path
from typing import Any

import pytest

from agent_mux import validate
from agent_mux.sessions.client import Sessions
from agent_mux.sessions.events import SessionEventConverter
from agent_mux.sessions.library import SkippedFile
from agent_mux_adapters.gemini import stored_documents

NAME = "session-2026-11-23T05-14-2d44672f"
PROMPT = {"id": "m1", "timestamp": "2026-11-23T05:14:40.230Z", "type": "user", "content": [{"text": "do it"}]}
ANSWER = {
    "id": "m2", "timestamp": "2026-11-23T05:14:41.230Z", "type": "gemini", "content": "Done.", "model": "gemini-x",
    "tokens": {"input": 10, "output": 2, "cached": 0, "thoughts": 0},
}  # fmt: skip
CALL = {
    "id": "c1", "name": "run_shell_command", "args": {"command": "ls"}, "status": "success",
    "result": [{"functionResponse": {"response": {"output": "Output: out\nProcess Group PGID: 1"}}}],
}  # fmt: skip


class Chats:
    """A directory with the sessions of one project."""

    def __init__(self, home: Path) -> None:
        self.path = home / ".gemini" / "tmp" / "workspace" / "chats"
        self.path.mkdir(parents=True)
        self.skipped: list[SkippedFile] = []
        self.sessions = Sessions(environ={"HOME": str(home)}, on_skipped=self.skipped.append)

    def write(self, *messages: dict[str, Any], **header: Any) -> Path:
        path = self.path / f"{NAME}.json"
        document = {"sessionId": "2d44672f-1", "startTime": PROMPT["timestamp"], **header, "messages": messages}
        path.write_text(json.dumps(document, indent=1))
        return path


@pytest.fixture
def chats(tmp_path: Path) -> Chats:
    return Chats(tmp_path)


def test_document_has_its_title_and_messages(chats: Chats) -> None:
    chats.write(PROMPT, ANSWER, summary="A summary")
    [summary] = chats.sessions.list()
    assert (summary.native_id, summary.title, summary.turn_count) == ("2d44672f-1", "A summary", 1)
    assert [message.text for message in chats.sessions.get(summary.id).messages] == ["do it", "Done."]


def test_rewritten_document_yields_only_what_is_new(chats: Chats) -> None:
    chats.write(PROMPT)
    known = chats.sessions.find("2d44672f-1")
    cursor = chats.sessions.open(known)
    converter = SessionEventConverter(known.adapter, known.summary)
    events: list[Any] = list(converter.read(cursor))
    states = [(PROMPT, ANSWER), (PROMPT, ANSWER), (PROMPT, {**ANSWER, "toolCalls": [CALL]})]
    for state in states:
        path = chats.write(*state)
        events += converter.read(cursor)
    path.write_text('{"sessionId": "2d4')  # it is being rewritten
    events += converter.read(cursor)
    events += converter.end()
    assert validate(events) == []
    assert [event.text for event in events if event.type == "message_stop"] == ["Done."]
    assert [event.type for event in events if event.type in {"tool_call_ready", "tool_result"}] == [
        "tool_call_ready",
        "tool_result",
    ]


def test_lines_replace_the_document_that_they_continue(chats: Chats) -> None:
    chats.write(PROMPT)
    lines = chats.path / f"{NAME}.jsonl"
    lines.write_text("".join(json.dumps(row) + "\n" for row in ({"sessionId": "2d44672f-1"}, PROMPT, ANSWER)))
    [summary] = chats.sessions.list()
    assert (summary.path, summary.message_count) == (str(lines), 2)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "it is not a complete JSON object"),
        (b'{"sessionId": "x", "messages": [', "it is not a complete JSON object"),
        (b'{"sessionId": "x"}', "it has no list of messages"),
        (b"[]", "it is not a complete JSON object"),
        (b'{"messages": []}', "it has no session id"),
    ],
)
def test_document_that_cannot_be_read_is_named(chats: Chats, content: bytes, reason: str) -> None:
    path = chats.path / f"{NAME}.json"
    path.write_bytes(content)
    listing = chats.sessions.list()
    assert (listing, [(one.path, one.reason) for one in listing.skipped]) == ([], [(str(path), reason)])


def test_document_that_is_too_large_is_named(chats: Chats, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_documents, "MAX_SIZE", 100)
    chats.write(PROMPT, ANSWER)
    assert "agent-mux reads up to 100" in chats.sessions.list().skipped[0].reason


@pytest.mark.parametrize("name", [["x"], {}, 5])
def test_prompt_with_an_id_of_another_type_is_read(chats: Chats, name: Any) -> None:
    chats.write({**PROMPT, "id": name}, ANSWER)
    [summary] = chats.sessions.list()
    assert [message.text for message in chats.sessions.get(summary.id).messages] == ["do it", "Done."]
    assert chats.skipped == []
