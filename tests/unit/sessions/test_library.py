"""Listing, finding and reading sessions of any agent."""

import errno
from pathlib import Path
from typing import Any

import pytest
from tests.unit.sessions.scripted_store import DAY, START, sessions_in, write_session

from agent_mux import AgentMuxError, CapabilityError
from agent_mux.sdk.registry import AdapterRegistry
from agent_mux.sessions.client import Sessions
from agent_mux.sessions.library import SkippedFile
from agent_mux.sessions.summary import SessionFilter


@pytest.fixture
def three(tmp_path: Path) -> Path:
    home = tmp_path / "home"
    home.mkdir()
    write_session(
        home, "first",
        {"prompt": "  hello\nthere ", "at": START}, {"text": "hi", "at": START + 5},
        {"call": "c1", "model": "big", "tokens": [1000, 100], "at": START + 5},
    )  # fmt: skip
    write_session(
        home, "second",
        {"session": "second", "cwd": "/work/project", "title": "named"},
        {"prompt": "one", "at": START + DAY}, {"tool": "Look", "input": {"at": "it"}},
        {"result": "Look", "output": "seen"},
        {"prompt": "two"}, {"text": "done", "at": START + DAY + 9},
        {"call": "c2", "model": "small", "tokens": [1000, 100], "at": START + DAY},
    )  # fmt: skip
    write_session(home, "third", {"prompt": "three", "at": START + 2 * DAY}, {"spent": 5.0})
    return home


def ids(found: Any) -> list[str]:
    return [summary.native_id for summary in found]


def test_a_listing_has_the_summary_of_each_session(three: Path) -> None:
    found = {summary.native_id: summary for summary in sessions_in(three).list()}
    first, second = found["first"], found["second"]
    assert (first.id, first.agent, first.title) == ("scripted:first", "scripted", "hello there")
    assert (first.created_at, first.updated_at, first.turn_count, first.message_count) == (START, START + 5, 1, 2)
    assert (first.models, first.path) == (("big",), str(three / "first.jsonl"))
    assert (second.title, second.cwd, second.turn_count, second.tool_call_count) == ("named", "/work/project", 2, 1)


def test_a_listing_is_sorted_by_date_cost_or_turns(three: Path) -> None:
    sessions = sessions_in(three)
    assert ids(sessions.list()) == ["third", "second", "first"]
    assert ids(sessions.list(sort="cost")) == ["third", "first", "second"]
    assert ids(sessions.list(sort="turns")) == ["second", "first", "third"]
    assert ids(sessions.list(sort="turns", order="asc")) == ["third", "first", "second"]
    assert sessions.latest().native_id == ids(sessions.list())[0]
    assert ids(sessions.list(limit=1)) == ["third"]


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (SessionFilter(agent="by-hand"), ["third", "second", "first"]),
        (SessionFilter(since=START + DAY), ["third", "second"]),
        (SessionFilter(until=START + DAY), ["first"]),
        (SessionFilter(model="small"), ["second"]),
        (SessionFilter(cwd="/work"), ["second"]),
        (SessionFilter(cwd="/work/project"), ["second"]),
        (SessionFilter(cwd="/wor"), []),
    ],
)
def test_only_sessions_matching_the_filter_are_listed(three: Path, wanted: SessionFilter, expected: list[str]) -> None:
    assert ids(sessions_in(three).list(wanted)) == expected


def test_the_filter_can_name_another_directory(three: Path, tmp_path: Path) -> None:
    elsewhere = sessions_in(tmp_path / "nowhere")
    assert elsewhere.list() == []
    assert len(elsewhere.list(SessionFilter(agent="scripted", directory=three))) == 3


@pytest.mark.parametrize("session", ["second", "scripted:second", "by-hand:second", "seco", "scripted:seco"])
def test_a_session_is_found_by_its_id_or_a_prefix(three: Path, session: str) -> None:
    assert sessions_in(three).get(session).summary.native_id == "second"


@pytest.mark.parametrize("session", ["", "sec", "none", "scripted:none", "other:second"])
def test_an_unknown_id_raises_session_not_found(three: Path, session: str) -> None:
    with pytest.raises(AgentMuxError, match="amux sessions list") as error:
        sessions_in(three).get(session)
    assert error.value.code == "SESSION_NOT_FOUND"


def test_an_ambiguous_prefix_lists_the_sessions(tmp_path: Path) -> None:
    for name in ("abcd1", "abcd2"):
        write_session(tmp_path, name, {"prompt": "x"})
    with pytest.raises(AgentMuxError, match=r"matches 2 sessions \(scripted:abcd1, scripted:abcd2\)"):
        sessions_in(tmp_path).get("abcd")
    write_session(tmp_path, "abcd", {"prompt": "x"})
    assert sessions_in(tmp_path).get("abcd").summary.native_id == "abcd"


def test_of_copies_with_one_id_the_latest_is_found(tmp_path: Path) -> None:
    for place, at in (("older", START), ("newer", START + 1)):
        row = {"session": "same", "cwd": f"/{place}"}
        write_session(tmp_path, place, row, {"prompt": "x", "at": at})
    assert sessions_in(tmp_path).get("same").summary.cwd == "/newer"


def test_a_session_is_read_as_messages(three: Path) -> None:
    messages = sessions_in(three).get("second").messages
    assert [(message.role, message.text, message.turn) for message in messages] == [
        ("user", "one", 0), ("assistant", "", 0), ("user", "two", 1), ("assistant", "done", 1),
    ]  # fmt: skip
    [used] = messages[1].tools
    assert (used.name, used.input, used.output, used.error) == ("Look", {"at": "it"}, "seen", None)
    assert messages[3].model == "small"


def test_a_session_removed_after_it_was_found_is_not_found(three: Path) -> None:
    sessions = sessions_in(three)
    known = sessions.find("second")
    known.found.path.unlink()
    with pytest.raises(AgentMuxError, match=r"second can no longer be read: ") as raised:
        sessions.read(known)
    assert raised.value.code == "SESSION_NOT_FOUND"


def test_unreadable_files_are_skipped_with_a_reason(three: Path) -> None:
    (three / "empty.jsonl").write_bytes(b"")
    (three / "noise.jsonl").write_bytes(b"\0\1\2\n" * 30)
    (three / "short.jsonl").write_bytes(b"no session\n")
    (three / "cut.jsonl").write_bytes(b'{"session":"cut"}\n{"prompt":"whole"}\n{"text":"half')
    (three / "future.jsonl").write_bytes(b'{"foreign":"it is of version 99"}\n')
    (three / "secret.jsonl").mkdir()
    (three / "dangling.jsonl").symlink_to(three / "nowhere")
    skipped: list[SkippedFile] = []
    sessions = sessions_in(three, on_skipped=skipped.append)
    assert ids(sessions.list()) == ["cut", "third", "second", "first"]
    assert sessions.get("cut").messages[-1].text == "whole"
    assert {Path(one.path).name: one.reason for one in skipped[: len(skipped) // 2]} == {
        "empty.jsonl": "it has no session id",
        "noise.jsonl": "none of its first 20 lines belongs to a session of this agent",
        "short.jsonl": "it has no line that can be read",
        "future.jsonl": "it is of version 99",
    }


def test_an_inaccessible_store_is_skipped(three: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    original = Path.open

    def refusing(self: Path, *how: Any, **more: Any) -> Any:  # root may read everything
        if self.name == "first.jsonl":
            raise PermissionError(errno.EACCES, "Permission denied", str(self))
        return original(self, *how, **more)

    monkeypatch.setattr(Path, "open", refusing)
    skipped: list[SkippedFile] = []
    assert len(sessions_in(three, on_skipped=skipped.append).list()) == 2
    assert [one.reason for one in skipped] == ["Permission denied"]


def test_an_empty_session_is_not_listed(tmp_path: Path) -> None:
    write_session(tmp_path, "empty", {"session": "empty", "title": "begun, and never used"})
    skipped: list[SkippedFile] = []
    assert sessions_in(tmp_path, on_skipped=skipped.append).list() == []
    assert skipped == []


def test_skipped_files_are_logged_by_default(three: Path, caplog: pytest.LogCaptureFixture) -> None:
    (three / "empty.jsonl").write_bytes(b"")
    sessions_in(three).list()
    assert [record.getMessage() for record in caplog.records] == [
        f"{three / 'empty.jsonl'} is skipped: it has no session id"
    ]


def test_an_agent_without_a_store_raises_capability_error() -> None:
    with pytest.raises(CapabilityError, match="replay does not support stored sessions"):
        Sessions(AdapterRegistry(), environ={}).list(SessionFilter(agent="replay"))
    with pytest.raises(AgentMuxError, match="no agent is named 'unknown-agent'"):
        Sessions(AdapterRegistry(), environ={}).list(SessionFilter(agent="unknown-agent"))


def test_listing_names_the_files_that_cannot_be_read(three: Path) -> None:
    (three / "noise.jsonl").write_bytes(b"noise\n")
    listing = sessions_in(three, on_skipped=lambda _: None).list(limit=1)
    assert ids(listing) == ["third"]
    assert listing.skipped == (
        SkippedFile(agent="scripted", path=str(three / "noise.jsonl"), reason="it has no line that can be read"),
    )


def test_session_of_unknown_rows_is_reported_again_from_the_cache(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    write_session(home, "newer", {"session": "newer"}, {"unknown": "utterance"}, {"unknown": "gesture"})
    write_session(home, "mixed", {"session": "mixed"}, {"unknown": "utterance"}, {"prompt": "hello"})
    for _ in range(2):
        sessions = sessions_in(home, cache=tmp_path / "cache", on_skipped=lambda _: None)
        listing = sessions.list()
        assert ids(listing) == ["mixed"]
        assert [one.reason for one in listing.skipped] == [
            "no message in it can be read, only unknown rows (utterance, gesture)"
        ]
