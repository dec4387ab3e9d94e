"""Named sessions are kept by name, agent and directory in one private file."""

import stat
import sys
from pathlib import Path

import pytest

from agent_mux import AgentMux, AgentMuxError, CapabilityError, ValidationError
from agent_mux.sessions.names import FILE, NamedSessions


def test_a_name_belongs_to_an_agent_and_a_directory(tmp_path: Path) -> None:
    names = NamedSessions(tmp_path / "own")
    assert names.find("review", "claude", tmp_path) is None
    names.store("review", "claude", tmp_path, "one")
    names.store("review", "codex", tmp_path, "two")
    names.store("review", "claude", tmp_path / "other", "three")
    names.store("review", "claude", tmp_path, "four")
    assert names.find("review", "claude", tmp_path) == "four"
    assert names.find("review", "codex", tmp_path) == "two"
    (tmp_path / "link").symlink_to(tmp_path)
    assert names.find("review", "claude", tmp_path / "link") == "four"
    assert {one.session_id for one in names.list(directory=tmp_path)} == {"two", "four"}
    assert stat.S_IMODE((tmp_path / "own" / FILE).stat().st_mode) == 0o600


def test_a_forgotten_name_is_new_again(tmp_path: Path) -> None:
    names = NamedSessions(tmp_path)
    names.store("a", "claude", tmp_path, "one")
    names.store("a", "codex", tmp_path, "two")
    assert [one.session_id for one in names.forget("a", agent="codex")] == ["two"]
    assert [one.session_id for one in names.forget("a")] == ["one"]
    with pytest.raises(AgentMuxError, match="no session is named 'a' here; `amux sessions names`") as caught:
        names.forget("a")
    assert caught.value.code == "SESSION_NOT_FOUND"


def test_the_names_of_a_session_can_continue_another_one(tmp_path: Path) -> None:
    names = NamedSessions(tmp_path)
    for agent, session in (("pi", "old"), ("omp", "old"), ("claude", "other")):
        names.store("a", agent, tmp_path, session)
    names.store("b", "pi", tmp_path, "old")
    names.move("pi", "old", "new")
    found = {(one.name, one.agent, one.session_id) for one in names.list()}
    assert found == {("a", "pi", "new"), ("b", "pi", "new"), ("a", "omp", "old"), ("a", "claude", "other")}


def test_a_name_is_reserved_for_one_run(tmp_path: Path) -> None:
    names = NamedSessions(tmp_path / "own")
    release = names.reserve("review", "claude", tmp_path, "first-run")
    others = (("review", "codex", tmp_path), ("review", "claude", tmp_path / "other"), ("second", "claude", tmp_path))
    for other in others:
        names.reserve(*other, "other-run")()
    with pytest.raises(AgentMuxError, match="session 'review' is used by run first-run; wait for its end") as caught:
        names.reserve("review", "claude", tmp_path, "second-run")
    assert caught.value.code == "INVALID_STATE_TRANSITION"
    release()
    names.reserve("review", "claude", tmp_path, "third-run")()


@pytest.mark.anyio
async def test_a_run_of_a_name_in_use_is_refused_and_holds_no_slot(tmp_path: Path) -> None:
    """Both would write to one session; claude and pi then lose a turn without an error."""
    NamedSessions(tmp_path / "own").reserve("a", "claude", tmp_path, "first-run")
    program = {"AMUX_CLAUDE_EXECUTABLE": sys.executable}
    async with AgentMux(config_dir=tmp_path / "own", max_concurrent_runs=1) as mux:
        with pytest.raises(AgentMuxError, match="session 'a' is used by run first-run"):
            mux.run(agent="claude", prompt="hi", session_name="a", cwd=tmp_path, env=program)
        assert mux.concurrency.working == 0


def test_a_damaged_file_is_reported_and_not_replaced(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text("{", "utf-8")
    for call in (
        lambda names: names.list(),
        lambda names: names.find("a", "claude", tmp_path),
        lambda names: names.store("a", "claude", tmp_path, "one"),
    ):
        with pytest.raises(AgentMuxError, match="remove it to forget all names") as caught:
            call(NamedSessions(tmp_path))
        assert caught.value.code == "CONFIG_ERROR"
    assert (tmp_path / FILE).read_text("utf-8") == "{"


def test_a_name_excludes_other_options_of_the_session(tmp_path: Path) -> None:
    mux = AgentMux(config_dir=tmp_path)
    for other in ({"session_id": "x"}, {"fork_session_id": "x"}, {"no_session": True}):
        with pytest.raises(ValidationError, match="at most one of"):
            mux.plan(agent="claude", prompt="hi", session_name="a", **other)
    with pytest.raises(ValidationError, match=r"session_name: got '\.\./a'"):
        mux.plan(agent="claude", prompt="hi", session_name="../a")
    with pytest.raises(CapabilityError, match=r"omit session_name \(--session-name\)"):
        mux.plan(agent="replay", prompt="hi", session_name="a")
