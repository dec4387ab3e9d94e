"""A stored thread of Codex 0.169.0 that was named, reverted and forked; see tests/stores/README.md."""

import shutil
from pathlib import Path

import pytest

from agent_mux import validate
from agent_mux.sessions.client import Sessions

RECORDED = Path(__file__).parents[3] / "stores" / "rewound" / "codex" / "0.169.0" / "home"
THREAD, EARLY, LATE = (
    "01a21810-1f9e-7d40-aede-c50359633ef8", "01a21810-248b-70c2-9d81-ebffad7d8466",
    "01a21810-5f9e-7083-b29b-1ae706540d00",
)  # fmt: skip
"""The thread, its fork before the second prompt was reverted, and its fork after the third prompt."""
INDEX = Path(".codex", "session_index.jsonl")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return Path(shutil.copytree(RECORDED, tmp_path / "home"))


def sessions_of(home: Path) -> Sessions:
    return Sessions(environ={"HOME": str(home)}, cache=home / "cache.sqlite")


def prompts(sessions: Sessions, session: str) -> list[str]:
    return [message.text for message in sessions.get(session).messages if message.role == "user"]


def test_a_reverted_thread_is_one_session_without_the_reverted_turns(home: Path) -> None:
    sessions = sessions_of(home)
    assert {summary.native_id for summary in sessions.list()} == {THREAD, EARLY, LATE}
    assert prompts(sessions, THREAD) == ["first question", "third question"]
    assert validate(list(sessions.events(THREAD))) == []


def test_reverted_turns_are_part_of_the_cost(home: Path) -> None:
    assert sessions_of(home).get(THREAD).summary.cost.input_tokens == 3 * 70


def test_a_fork_begins_with_the_turns_of_its_time(home: Path) -> None:
    sessions = sessions_of(home)
    assert prompts(sessions, EARLY) == ["first question", "early fork"]
    assert prompts(sessions, LATE) == ["first question", "third question", "late fork"]


def test_the_name_in_the_index_is_the_title_also_if_it_changes(home: Path) -> None:
    titles = {summary.native_id: summary.title for summary in sessions_of(home).list()}
    assert titles == {THREAD: "My name", EARLY: "first question", LATE: "My name"}
    with (home / INDEX).open("a") as index:
        index.write(f'{{"id":"{THREAD}","thread_name":"Another name"}}\n')
    assert {summary.title for summary in sessions_of(home).list()} == {"Another name", "first question", "My name"}


def test_without_an_index_the_title_is_the_first_prompt(home: Path) -> None:
    (home / INDEX).unlink()
    assert {summary.title for summary in sessions_of(home).list()} == {"first question"}


def test_each_turn_is_a_checkpoint_without_files(home: Path) -> None:
    found = sessions_of(home).checkpoints(THREAD)
    assert [(one.turn, one.prompt, one.has_files) for one in found] == [
        (0, "first question", False), (1, "third question", False),
    ]  # fmt: skip
    assert found[0].id == "01a21810-203e-7742-9838-5a4d18ce0af6"
