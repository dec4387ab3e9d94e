"""Stored sessions: finding, listing and replaying them for an editor."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.unit.acp_agent.test_updates import sent
from ulid import ULID

from agent_mux import AgentMux, AgentMuxError
from agent_mux.acp_server import stored_sessions
from agent_mux.acp_server.stored_sessions import find_native, find_stored, history_updates, session_tag

STORES = Path(__file__).parents[2] / "stores"
OURS = str(ULID.from_bytes(bytes(16)))


@pytest.fixture
def mux(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AgentMux:
    """In a home where Claude Code has sessions."""
    home = tmp_path / "home"
    shutil.copytree(STORES / "claude" / "2.1.330" / "home", home)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    monkeypatch.chdir(home)
    return AgentMux(config_dir=tmp_path / "config")


def index(mux: AgentMux, session_id: str, *tags: str) -> None:
    """A run of this session was indexed."""
    path = mux.journals.parent / "run-index.jsonl"
    path.parent.mkdir(exist_ok=True)
    line = {"v": 1, "runId": OURS, "agent": "claude", "sessionId": session_id, "timestamp": "2026-11-22T09:30:00.000Z"}
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps({**line, "tags": tags}) + "\n")


def natives(mux: AgentMux) -> list[str]:
    return [summary.native_id for summary in mux.sessions.list() if summary.agent == "claude"]


def test_a_session_is_found_by_the_agents_id_and_by_ours(mux: AgentMux) -> None:
    one, other, *_ = natives(mux)
    index(mux, other, "mine", session_tag(OURS))
    assert find_stored(mux, "claude", one).summary.native_id == one
    assert find_stored(mux, "claude", OURS).summary.native_id == other
    assert find_native(mux, "claude", OURS) == other


def test_an_unknown_session_is_an_error(mux: AgentMux) -> None:
    for wanted in (OURS, "nothing", "../../etc/passwd"):
        with pytest.raises(AgentMuxError, match="no stored session") as raised:
            find_native(mux, "claude", wanted)
        assert raised.value.code == "SESSION_NOT_FOUND"


def test_without_readable_sessions_the_given_id_is_used(mux: AgentMux) -> None:
    assert find_native(mux, "cursor", "theirs") == "theirs"


def test_sessions_are_listed_page_by_page_under_the_ids_that_load_them(
    mux: AgentMux, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = natives(mux)
    index(mux, known[0], session_tag(OURS))
    monkeypatch.setattr(stored_sessions, "PAGE_SIZE", 2)
    pages, cursor = [], None
    while True:
        page = stored_sessions.list_page(mux, "claude", {known[1]: "live"}, None, cursor)
        pages.append([one.session_id for one in page.sessions])
        cursor = page.next_cursor
        if cursor is None:
            break
    assert len(pages) == -(-len(known) // 2)
    assert [name for page in pages for name in page] == [OURS, "live", *known[2:]]


@pytest.mark.parametrize("agent", sorted(path.name for path in STORES.iterdir() if path.is_dir()))
def test_every_stored_session_converts_to_updates(agent: str, tmp_path: Path) -> None:
    """What is shown is what the session has: prompts, answers and tool calls that are over."""
    library = AgentMux(config_dir=tmp_path).sessions
    for home in (STORES / agent).glob("*/home"):
        for session in sessions_of(library, agent, home):
            updates = sent(history_updates(session, "/w"))
            prompts = [one for one in updates if one["sessionUpdate"] == "user_message_chunk"]
            calls = [one for one in updates if one["sessionUpdate"] == "tool_call"]
            assert len(prompts) == sum(message.role == "user" for message in session.messages)
            assert len(calls) == sum(len(message.tools) for message in session.messages)
            assert {one["status"] for one in calls} <= {"completed", "failed"}


def sessions_of(library: Any, agent: str, home: Path) -> list[Any]:
    library._environ = {"HOME": str(home)}
    known = [one for one in library.known() if one.adapter.agent == agent]
    assert known, home
    return [library.read(one) for one in known]
