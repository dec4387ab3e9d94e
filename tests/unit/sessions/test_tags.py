"""Sessions have the tags of their runs."""

import logging
from pathlib import Path
from typing import Any

import pytest
from tests.unit.sessions.scripted_store import START, sessions_in, write_session

from agent_mux import AgentMux
from agent_mux.journal.run_index import INDEX, append_line, encode_line, new_index_record
from agent_mux.sessions.client import Sessions
from agent_mux.sessions.summary import SessionFilter
from agent_mux.sessions.tags import SessionTags

PRICE = 1000 * 10 / 1e6 + 100 * 20 / 1e6  # USD, of one call below


def add_run(place: Path, session: str, *tags: str, agent: str = "scripted") -> None:
    append_line(
        place / INDEX,
        encode_line(new_index_record(started_at=START, run_id="R", agent=agent, session_id=session, tags=tags)),
    )


class TaggedHome:
    """A home with three sessions, a global directory and a project."""

    def __init__(self, directory: Path) -> None:
        self.sessions_dir, self.config = directory / "sessions", directory / "mux"
        self.project = directory / "repo" / ".agent-mux"
        self.sessions_dir.mkdir()
        self.project.mkdir(parents=True)
        self.cwd = str(self.project.parent)
        for name, cwd in (("one", "/elsewhere"), ("two", f"{self.cwd}/src"), ("three", None)):
            place = {} if cwd is None else {"cwd": cwd}
            call = {"call": name, "model": "big", "tokens": [1000, 100], "at": START}
            write_session(
                self.sessions_dir, name, {"session": name, **place}, {"prompt": f"do {name}", "at": START}, call
            )

    def sessions(self, **arguments: Any) -> Sessions:
        return sessions_in(self.sessions_dir, tags=SessionTags(self.config), **arguments)

    def tags(self, sessions: Sessions | None = None) -> dict[str, tuple[str, ...]]:
        return {one.native_id: one.tags for one in (sessions or self.sessions()).list()}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TaggedHome:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("AGENT_MUX_PROJECT_DIR", raising=False)
    monkeypatch.chdir(tmp_path)
    return TaggedHome(tmp_path)


def test_a_session_has_the_tags_of_its_runs(home: TaggedHome) -> None:
    add_run(home.config, "one", "a", "b")
    add_run(home.config, "one", "b", "c")
    add_run(home.config, "three")
    add_run(home.config, "two", "x", agent="other")
    assert home.tags() == {"one": ("a", "b", "c"), "two": (), "three": ()}


def test_the_index_of_the_session_s_project_is_read(home: TaggedHome) -> None:
    add_run(home.project, "two", "p")
    add_run(home.config, "two", "g")
    assert home.tags() == {"one": (), "two": ("g", "p"), "three": ()}


def test_the_index_of_the_current_project_is_read(home: TaggedHome, monkeypatch: pytest.MonkeyPatch) -> None:
    add_run(home.project, "three", "p")
    assert home.tags()["three"] == ()
    monkeypatch.chdir(home.cwd)
    assert home.tags()["three"] == ("p",)
    monkeypatch.chdir("/")
    assert home.tags(sessions_in(home.sessions_dir, tags=SessionTags(home.config, home.project)))["three"] == ("p",)


def test_without_an_index_there_are_no_tags(home: TaggedHome) -> None:
    assert home.tags() == home.tags(sessions_in(home.sessions_dir)) == {"one": (), "two": (), "three": ()}
    assert not home.config.exists()


def test_tags_added_later_are_found(home: TaggedHome) -> None:
    sessions = home.sessions()
    assert home.tags(sessions)["one"] == ()
    add_run(home.config, "one", "a")
    assert home.tags(sessions)["one"] == ("a",)


def test_tags_are_not_cached(home: TaggedHome, tmp_path: Path) -> None:
    cache = tmp_path / "cache.sqlite"
    add_run(home.config, "one", "a-very-special-tag")
    assert home.tags(home.sessions(cache=cache))["one"] == ("a-very-special-tag",)
    assert b"a-very-special-tag" not in cache.read_bytes()
    assert home.tags(home.sessions(cache=cache))["one"] == ("a-very-special-tag",)
    (home.config / INDEX).unlink()
    assert home.tags(home.sessions(cache=cache))["one"] == ()


def test_an_unreadable_index_does_not_fail_a_listing(home: TaggedHome, caplog: pytest.LogCaptureFixture) -> None:
    (home.config / INDEX).mkdir(parents=True)
    with caplog.at_level(logging.WARNING, logger="agent_mux"):
        assert set(home.tags()) == {"one", "two", "three"}
    assert "sessions may lack tags" in caplog.text


@pytest.mark.parametrize(
    ("tags", "found"), [((), 3), (("a",), 2), (("a", "b"), 1), (("b",), 1), (("c",), 0), (("a", "c"), 0)]
)
def test_a_filter_by_tags_requires_all_of_them(home: TaggedHome, tags: tuple[str, ...], found: int) -> None:
    add_run(home.config, "one", "a", "b")
    add_run(home.config, "two", "a")
    wanted = SessionFilter(tags=tags)
    assert len(home.sessions().list(wanted)) == len(home.sessions().search("do", wanted)) == found


def test_a_single_session_has_its_tags(home: TaggedHome) -> None:
    add_run(home.config, "one", "a")
    sessions = home.sessions()
    assert sessions.find("one").summary.tags == sessions.get("one").summary.tags == ("a",)


def test_a_session_with_two_tags_counts_once_in_the_total(home: TaggedHome) -> None:
    add_run(home.config, "one", "a", "b")
    add_run(home.config, "two", "b")
    report = home.sessions().total_cost(group_by="tag")
    assert {name: one.calls for name, one in report.items()} == {"a": 1, "b": 2, "(no tag)": 1}
    assert (report.total.calls, report.total.computed_usd) == (3, pytest.approx(3 * PRICE))
    only = home.sessions().total_cost(SessionFilter(tags=("a",)), group_by="tag")
    assert ({name: one.calls for name, one in only.items()}, only.total.calls) == ({"a": 1, "b": 1}, 1)


def test_totals_of_other_groups_are_their_sum(home: TaggedHome) -> None:
    for group_by in ("agent", "model", "day"):
        report = home.sessions().total_cost(group_by=group_by)  # type: ignore[arg-type]  # each of them is one
        assert sum(one.computed_usd for one in report.values()) == pytest.approx(report.total.computed_usd)


def test_the_sessions_of_a_client_have_tags(home: TaggedHome) -> None:
    store = Path(__file__).parents[2] / "stores" / "claude" / "2.1.330" / "home" / ".claude"
    mux = AgentMux(config_dir=home.config)
    wanted = SessionFilter(agent="claude", directory=store)
    session = mux.sessions.list(wanted)[0]
    add_run(home.config, session.native_id, "t", agent="claude")
    assert mux.sessions.list(SessionFilter(agent="claude", directory=store, tags=("t",)))[0].id == session.id
