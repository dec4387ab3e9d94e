"""Tags of sessions: from the runs that they came of."""

import logging
from pathlib import Path
from typing import Any

import pytest
from tests.unit.sessions.written import START, sessions_in, written

from agent_mux import AgentMux
from agent_mux.journal.run_index import INDEX, append, line_of, new_record
from agent_mux.sessions.client import Sessions
from agent_mux.sessions.summary import SessionFilter
from agent_mux.sessions.tags import SessionTags

PRICE = 1000 * 10 / 1e6 + 100 * 20 / 1e6  # USD, of one call below


def indexed(place: Path, session: str, *tags: str, agent: str = "scripted") -> None:
    append(place / INDEX, line_of(new_record(started_at=START, run_id="R", agent=agent, session_id=session, tags=tags)))


class House:
    """A home with three sessions, a global directory and a project."""

    def __init__(self, directory: Path) -> None:
        self.home, self.config = directory / "sessions", directory / "mux"
        self.project = directory / "repo" / ".agent-mux"
        self.home.mkdir()
        self.project.mkdir(parents=True)
        self.cwd = str(self.project.parent)
        for name, cwd in (("one", "/elsewhere"), ("two", f"{self.cwd}/src"), ("three", None)):
            place = {} if cwd is None else {"cwd": cwd}
            call = {"call": name, "model": "big", "tokens": [1000, 100], "at": START}
            written(self.home, name, {"session": name, **place}, {"prompt": f"do {name}", "at": START}, call)

    def sessions(self, **arguments: Any) -> Sessions:
        return sessions_in(self.home, tags=SessionTags(self.config), **arguments)

    def tags(self, sessions: Sessions | None = None) -> dict[str, tuple[str, ...]]:
        return {one.native_id: one.tags for one in (sessions or self.sessions()).list()}


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> House:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("AGENT_MUX_PROJECT_DIR", raising=False)
    monkeypatch.chdir(tmp_path)
    return House(tmp_path)


def test_a_session_has_the_tags_of_its_runs(house: House) -> None:
    indexed(house.config, "one", "a", "b")
    indexed(house.config, "one", "b", "c")
    indexed(house.config, "three")
    indexed(house.config, "two", "x", agent="somebody-else")
    assert house.tags() == {"one": ("a", "b", "c"), "two": (), "three": ()}


def test_a_run_in_a_project_is_found_by_where_its_session_was_held(house: House) -> None:
    indexed(house.project, "two", "p")
    indexed(house.config, "two", "g")
    assert house.tags() == {"one": (), "two": ("g", "p"), "three": ()}


def test_the_index_of_the_current_project_counts_too(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    indexed(house.project, "three", "p")
    assert house.tags()["three"] == ()
    monkeypatch.chdir(house.cwd)
    assert house.tags()["three"] == ("p",)
    monkeypatch.chdir("/")
    assert house.tags(sessions_in(house.home, tags=SessionTags(house.config, house.project)))["three"] == ("p",)


def test_without_an_index_there_are_no_tags(house: House) -> None:
    assert house.tags() == house.tags(sessions_in(house.home)) == {"one": (), "two": (), "three": ()}
    assert not house.config.exists()


def test_what_was_added_is_seen(house: House) -> None:
    sessions = house.sessions()
    assert house.tags(sessions)["one"] == ()
    indexed(house.config, "one", "a")
    assert house.tags(sessions)["one"] == ("a",)


def test_tags_are_not_remembered_with_the_rest(house: House, tmp_path: Path) -> None:
    cache = tmp_path / "cache.sqlite"
    indexed(house.config, "one", "a-very-special-tag")
    assert house.tags(house.sessions(cache=cache))["one"] == ("a-very-special-tag",)
    assert b"a-very-special-tag" not in cache.read_bytes()
    assert house.tags(house.sessions(cache=cache))["one"] == ("a-very-special-tag",)
    (house.config / INDEX).unlink()
    assert house.tags(house.sessions(cache=cache))["one"] == ()


def test_an_index_that_cannot_be_read_fails_no_listing(house: House, caplog: pytest.LogCaptureFixture) -> None:
    (house.config / INDEX).mkdir(parents=True)
    with caplog.at_level(logging.WARNING, logger="agent_mux"):
        assert set(house.tags()) == {"one", "two", "three"}
    assert "sessions may lack tags" in caplog.text


@pytest.mark.parametrize(
    ("tags", "found"), [((), 3), (("a",), 2), (("a", "b"), 1), (("b",), 1), (("c",), 0), (("a", "c"), 0)]
)
def test_only_those_with_all_of_the_tags(house: House, tags: tuple[str, ...], found: int) -> None:
    indexed(house.config, "one", "a", "b")
    indexed(house.config, "two", "a")
    wanted = SessionFilter(tags=tags)
    assert len(house.sessions().list(wanted)) == len(house.sessions().search("do", wanted)) == found


def test_one_session_has_its_tags_too(house: House) -> None:
    indexed(house.config, "one", "a")
    sessions = house.sessions()
    assert sessions.find("one").summary.tags == sessions.get("one").summary.tags == ("a",)


def test_costs_by_tag_and_their_total_once(house: House) -> None:
    indexed(house.config, "one", "a", "b")
    indexed(house.config, "two", "b")
    report = house.sessions().total_cost(group_by="tag")
    assert {name: one.calls for name, one in report.items()} == {"a": 1, "b": 2, "(no tag)": 1}
    assert (report.total.calls, report.total.computed_usd) == (3, pytest.approx(3 * PRICE))
    only = house.sessions().total_cost(SessionFilter(tags=("a",)), group_by="tag")
    assert ({name: one.calls for name, one in only.items()}, only.total.calls) == ({"a": 1, "b": 1}, 1)


def test_totals_of_the_other_groups_are_the_sum_of_them(house: House) -> None:
    for group_by in ("agent", "model", "day"):
        report = house.sessions().total_cost(group_by=group_by)  # type: ignore[arg-type]  # each of them is one
        assert sum(one.computed_usd for one in report.values()) == pytest.approx(report.total.computed_usd)


def test_the_sessions_of_a_client_have_tags(house: House) -> None:
    store = Path(__file__).parents[2] / "stores" / "claude" / "2.1.330" / "home" / ".claude"
    mux = AgentMux(config_dir=house.config)
    wanted = SessionFilter(agent="claude", directory=store)
    session = mux.sessions.list(wanted)[0]
    indexed(house.config, session.native_id, "t", agent="claude")
    assert mux.sessions.list(SessionFilter(agent="claude", directory=store, tags=("t",)))[0].id == session.id
