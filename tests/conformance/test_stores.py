"""The stores that real CLIs left (tests/stores/README.md): each tells the same story, whatever its format."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from agent_mux import validate
from agent_mux.sessions.client import Sessions
from agent_mux.sessions.summary import SessionFilter

STORES = Path(__file__).parents[1] / "stores"
RECORDED = [path.parent for path in sorted(STORES.glob("*/*/home"))]
WITH_STORY = frozenset({"codex", "copilot", "omp", "pi"})
"""Stores that have the sessions of tests/e2e/test_live_stored.py."""
PROJECT, OTHER = "/home/dev/project", "/home/dev/other"


@pytest.fixture(params=RECORDED, ids=lambda path: "/".join(path.parts[-2:]))
def store(request: pytest.FixtureRequest) -> Path:
    path = request.param
    assert isinstance(path, Path)
    return path


@pytest.fixture
def sessions(store: Path) -> Sessions:
    def refuse(skipped: Any) -> None:
        raise AssertionError(str(skipped))

    return Sessions(environ={"HOME": str(store / "home")}, on_skipped=refuse)


def agent_of(store: Path) -> str:
    return store.parent.name


def test_every_event_stream_keeps_the_contract(sessions: Sessions) -> None:
    found = sessions.list(limit=None)
    assert found
    for summary in found:
        events = list(sessions.events(summary.id))
        kinds = [event.type for event in events]
        assert validate(events) == []
        assert kinds.count("turn_start") == kinds.count("turn_end") == summary.turn_count
        assert events == list(sessions.events(summary.id))


def test_a_session_is_told_as_it_was_held(sessions: Sessions, store: Path) -> None:
    if agent_of(store) not in WITH_STORY:
        pytest.skip("its sessions are others: it has tests of its own")
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


def test_what_happened_to_files_and_in_the_shell_is_among_the_events(sessions: Sessions, store: Path) -> None:
    if agent_of(store) not in WITH_STORY:
        pytest.skip("its sessions are others: it has tests of its own")
    [summary] = sessions.list(SessionFilter(cwd=PROJECT))
    events: list[Any] = list(sessions.events(summary.id))
    [exited] = [event for event in events if event.type == "shell_exit"]
    assert exited.exit_code == 3
    [made] = [event for event in events if event.type in {"file_create", "file_write"}]
    assert made.path.endswith("a.txt")
    assert made.byte_count == len("one\n")


def test_a_fork_goes_on_where_its_origin_ended(sessions: Sessions) -> None:
    found = sorted(sessions.list(SessionFilter(cwd=OTHER)), key=lambda summary: summary.turn_count)
    if not found:
        pytest.skip("no fork is in this store")
    origin, fork = found
    assert fork.forked_from in {origin.id, None}
    difference = sessions.diff(origin.id, fork.id)
    assert difference.common == 2
    [change] = difference.changes
    assert change.removed == []
    assert [message.text for message in change.added] == ["second question", "Second answer."]
    # What the copy says was used once.
    [total] = sessions.total_cost(SessionFilter(cwd=OTHER)).values()
    assert total.calls == 2
    assert total.input_tokens == 2 * origin.cost.input_tokens


def test_a_copy_of_the_store_can_be_read_where_it_is(sessions: Sessions, store: Path, tmp_path: Path) -> None:
    agent = agent_of(store)
    [own] = [path for path in (store / "home").iterdir() if path.name.startswith(".")]
    inside = own / "agent" if (own / "agent").is_dir() else own
    shutil.copytree(inside, tmp_path / "copy")
    nowhere = Sessions(environ={"HOME": str(tmp_path / "nowhere")})
    assert nowhere.list() == []
    copied = nowhere.list(SessionFilter(agent=agent, directory=tmp_path / "copy"))
    assert [summary.id for summary in copied] == [summary.id for summary in sessions.list()]


def test_no_byte_less_makes_it_unreadable(store: Path, tmp_path: Path) -> None:
    """A file that was cut off anywhere is a session up to there, or none, and never an error."""
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
