"""Stored sessions of Copilot are changed by requests to its headless runtime."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.unit.adapters.session_steps import SESSION, perform

from agent_mux.sdk.config import AgentPaths
from agent_mux.sdk.documents import Document, open_document
from agent_mux.sdk.session_changes import RewindOutcome, RewindRequest, SessionChangeRefusedError, SessionSteps
from agent_mux.sdk.sessions import SessionDescribed
from agent_mux.sessions.client import Sessions
from agent_mux_adapters.copilot import sessions as stored
from agent_mux_adapters.copilot.session_changes import SESSIONS

STARTED = ("/agent", "--headless", "--no-auto-update", "--stdio")
REQUEST = RewindRequest(checkpoint="e2", previous="e1", scope="conversation")


def change(name: str, *arguments: Any) -> SessionSteps[Any]:
    command: Callable[..., SessionSteps[Any]] = getattr(SESSIONS, name)
    return command(SESSION, *arguments)


def answers(*results: Any) -> list[dict[str, Any]]:
    event = {"jsonrpc": "2.0", "method": "session.event", "params": {}}
    return [
        message for number, result in enumerate(results, 1) for message in (event, {"id": number, "result": result})
    ]


def methods(steps: list[Any]) -> list[str]:
    assert steps[0] == STARTED
    return [step["method"] for step in steps[1:]]


def test_a_session_is_deleted_without_opening_it() -> None:
    steps, _ = perform(change("delete"), answers({}, None))
    assert methods(steps) == ["connect", "sessions.delete"]
    assert steps[2]["params"] == {"sessionId": "0af1"}


def test_a_session_is_renamed_and_written() -> None:
    steps, _ = perform(change("rename", "New"), answers({}, {}, None, None))
    assert methods(steps) == ["connect", "session.resume", "session.name.set", "sessions.close"]
    assert steps[3]["params"] == {"sessionId": "0af1", "name": "New"}


def test_a_name_that_copilot_does_not_take_is_refused_before_it_starts() -> None:
    with pytest.raises(SessionChangeRefusedError, match="at most 100 characters"):
        perform(change("rename", "x" * 101), [])


@pytest.mark.parametrize("outcome", ["success", "snapshot-prune-failed"])
def test_a_rewind_shortens_the_conversation(outcome: str) -> None:
    done = {"outcome": outcome, "eventsRemoved": 4, "restoredFiles": [], "skippedFiles": []}
    steps, result = perform(change("rewind", REQUEST), answers({}, {}, done, None))
    assert methods(steps)[-2:] == ["session.history.rewind", "sessions.close"]
    assert steps[3]["params"] == {"sessionId": "0af1", "eventId": "e2", "mode": "conversation"}
    assert result == RewindOutcome()


def test_a_rewind_that_changed_nothing_has_the_reason() -> None:
    done = {"outcome": "session-busy", "restoredFiles": [], "skippedFiles": []}
    with pytest.raises(SessionChangeRefusedError, match=r"session\.history\.rewind: session-busy"):
        perform(change("rewind", REQUEST), answers({}, {}, done))


@pytest.mark.parametrize(
    ("workspace", "title"),
    [
        ("name: 'Seven: more'\nuser_named: true\n", "Seven: more"),
        ("name: generated\nuser_named: false\n", "hello"),
        ("name: [\n", "hello"),
        (None, "hello"),
    ],
)
def test_the_name_of_the_user_is_the_title(tmp_path: Path, workspace: str | None, title: str) -> None:
    folder = tmp_path / ".copilot" / "session-state" / "s1"
    folder.mkdir(parents=True)
    (folder / "events.jsonl").write_text(
        '{"type":"session.start","data":{"sessionId":"s1","context":{"cwd":"/w"}},"id":"a"}\n'
        '{"type":"user.message","data":{"content":"hello"},"id":"b"}\n'
    )
    if workspace is not None:
        (folder / "workspace.yaml").write_text(workspace)
    [summary] = Sessions(environ={"HOME": str(tmp_path)}).list()
    assert summary.title == title


def test_the_name_is_read_once_for_all_resumptions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / ".copilot" / "session-state" / "s1"
    folder.mkdir(parents=True)
    context = '"data":{"sessionId":"s1","context":{"cwd":"/w"}}'
    resumed = "".join(f'{{"type":"session.resume",{context},"id":"r{number}"}}\n' for number in range(3))
    (folder / "events.jsonl").write_text(f'{{"type":"session.start",{context},"id":"a"}}\n{resumed}')
    (folder / "workspace.yaml").write_text("name: Seven\nuser_named: true\n")
    reads: list[str] = []

    def open_counted(text: str, form: Any) -> Document:
        reads.append(form)
        return open_document(text, form)

    monkeypatch.setattr(stored, "open_document", open_counted)
    [found] = stored.find(AgentPaths(environ={"HOME": str(tmp_path)}))
    cursor = stored.open_session(found)
    titles = [entry.fact.title for entry in cursor.read() if isinstance(entry.fact, SessionDescribed)]
    assert titles == [None] * 4 + ["Seven"]
    assert (list(cursor.read()), reads) == ([], ["yaml"])
    with (folder / "events.jsonl").open("a") as events:
        events.write(resumed)
    (folder / "workspace.yaml").write_text("name: Eight\nuser_named: true\n")
    titles = [entry.fact.title for entry in cursor.read() if isinstance(entry.fact, SessionDescribed)]
    assert (titles, reads) == ([None] * 3 + ["Eight"], ["yaml"] * 2)
