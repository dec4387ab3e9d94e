"""Session stores written by real CLIs (tests/stores/README.md): equal sessions are read from every format."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from agent_mux import validate
from agent_mux.sessions.client import Sessions
from agent_mux.sessions.summary import SessionFilter

STORES = Path(__file__).parents[1] / "stores"
RECORDED = [path.parent for path in sorted(STORES.glob("*/*/home"))]
WITH_COMMON_SESSIONS = frozenset({"codex", "copilot", "omp", "pi"})
"""Agents whose stores contain the sessions of tests/e2e/test_live_stored.py."""
PROJECT, OTHER = "/home/dev/project", "/home/dev/other"


@pytest.fixture(params=RECORDED, ids=lambda path: "/".join(path.parts[-2:]))
def store(request: pytest.FixtureRequest) -> Path:
    path = request.param
    assert isinstance(path, Path)
    return path


@pytest.fixture
def sessions(store: Path) -> Sessions:
    def fail(skipped: Any) -> None:
        raise AssertionError(str(skipped))

    return Sessions(environ={"HOME": str(store / "home")}, on_skipped=fail)


def agent_of(store: Path) -> str:
    return store.parent.name


def test_event_streams_of_all_sessions_are_valid(sessions: Sessions) -> None:
    found = sessions.list(limit=None)
    assert found
    for summary in found:
        events = list(sessions.events(summary.id))
        kinds = [event.type for event in events]
        assert validate(events) == []
        assert kinds.count("turn_start") == kinds.count("turn_end") == summary.turn_count
        assert events == list(sessions.events(summary.id))


def test_session_has_the_recorded_messages_and_calls(sessions: Sessions, store: Path) -> None:
    if agent_of(store) not in WITH_COMMON_SESSIONS:
        pytest.skip("this store has other sessions, and its own tests")
    [summary] = sessions.list(SessionFilter(cwd=PROJECT))
    assert (summary.agent, summary.title, summary.turn_count) == (agent_of(store), "do the thing", 1)
    assert summary.updated_at >= (summary.created_at or 0) > 0
    messages = sessions.get(summary.id).messages
    assert [message.text for message in messages if message.role == "user"] == ["do the thing"]
    assert [message.text for message in messages if message.role == "assistant" and message.text] == [
        "Writing.", "All done.",
    ]  # fmt: skip
    writes, command = (tool for message in messages for tool in message.tools)
    assert "a.txt" in str(writes.input)
    assert writes.error is None
    assert "exit 3" in str(command.input)
    assert command.error is not None
    assert "out" in command.error
    assert len({message.model for message in messages if message.role == "assistant"}) == 1


def test_events_contain_file_changes_and_exit_codes(sessions: Sessions, store: Path) -> None:
    if agent_of(store) not in WITH_COMMON_SESSIONS:
        pytest.skip("this store has other sessions, and its own tests")
    [summary] = sessions.list(SessionFilter(cwd=PROJECT))
    events: list[Any] = list(sessions.events(summary.id))
    [exited] = [event for event in events if event.type == "shell_exit"]
    assert exited.exit_code == 3
    [made] = [event for event in events if event.type in {"file_create", "file_write"}]
    assert made.path.endswith("a.txt")
    assert made.byte_count == len("one\n")


def test_fork_continues_after_the_messages_of_its_origin(sessions: Sessions) -> None:
    found = sorted(sessions.list(SessionFilter(cwd=OTHER)), key=lambda summary: summary.turn_count)
    if not found:
        pytest.skip("this store contains no fork")
    origin, fork = found
    assert fork.forked_from in {origin.id, None}
    difference = sessions.diff(origin.id, fork.id)
    assert difference.common == 2
    [change] = difference.changes
    assert change.removed == []
    assert [message.text for message in change.added] == ["second question", "Second answer."]
    # The usage of the copied call is counted once.
    [total] = sessions.total_cost(SessionFilter(cwd=OTHER)).values()
    assert total.calls == 2
    assert total.input_tokens == 2 * origin.cost.input_tokens


def test_copied_store_is_read_from_another_directory(sessions: Sessions, store: Path, tmp_path: Path) -> None:
    agent = agent_of(store)
    [own] = [path for path in (store / "home").iterdir() if path.name.startswith(".") and path.name != ".agent-mux"]
    inside = own / "agent" if (own / "agent").is_dir() else own
    shutil.copytree(inside, tmp_path / "copy")
    empty = Sessions(environ={"HOME": str(tmp_path / "nowhere")})
    assert empty.list() == []
    copied = empty.list(SessionFilter(agent=agent, directory=tmp_path / "copy"))
    assert [summary.id for summary in copied] == [summary.id for summary in sessions.list()]


@pytest.mark.slow
def test_truncated_store_raises_nothing(store: Path, tmp_path: Path) -> None:
    """A file that is truncated anywhere yields a shorter session, or none, but no error."""
    largest = max((store / "home").rglob("*.jsonl"), key=lambda path: path.stat().st_size)
    shutil.copytree(store / "home", tmp_path / "home")
    copy, content = tmp_path / "home" / largest.relative_to(store / "home"), largest.read_bytes()
    reasons: set[str] = set()
    sessions = Sessions(
        environ={"HOME": str(tmp_path / "home")}, on_skipped=lambda skipped: reasons.add(skipped.reason)
    )
    for size in range(0, len(content), max(len(content) // 40, 1)):
        copy.write_bytes(content[:size])
        for summary in sessions.list():
            assert validate(list(sessions.events(summary.id))) == []
    assert reasons <= {"it has no session id", "it has no line that can be read"}
