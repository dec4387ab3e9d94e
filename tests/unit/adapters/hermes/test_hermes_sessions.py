"""The store that Hermes 0.19.0 left behind; see tests/stores/README.md."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from agent_mux import validate
from agent_mux.sdk.config import AgentPaths
from agent_mux.sessions.client import Sessions
from agent_mux.sessions.summary import SessionFilter
from agent_mux_adapters.hermes.sessions import STORE

DUMP = Path(__file__).parents[3] / "stores" / "hermes" / "0.19.0" / "state.sql"

LONG, FORK = "20261122_124233_8b88da", "20261122_124252_d383db"
TOOL_INTERRUPTED, TEXT_INTERRUPTED = "20261122_124254_8bf161", "20261122_124259_6c0c6a"
FAILED = "20261122_124302_ee5182"
OTHERS = (TOOL_INTERRUPTED, TEXT_INTERRUPTED, FAILED)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / ".hermes").mkdir()
    with database_of(tmp_path) as database:
        database.executescript(DUMP.read_text())
    return tmp_path


def database_of(home: Path) -> "closing[sqlite3.Connection]":
    return closing(sqlite3.connect(home / ".hermes" / "state.db", isolation_level=None))


@pytest.fixture
def sessions(home: Path) -> Iterator[Sessions]:
    skipped: list[Any] = []
    yield Sessions(environ={"HOME": str(home)}, on_skipped=skipped.append)
    assert not skipped


def add_message(home: Path, session: str, role: str, content: str, **fields: Any) -> None:
    """Add a message to a stored session."""
    fields = {"active": 1, "compacted": 0, "timestamp": 1795400000.0, **fields}
    names = ", ".join(["id", "session_id", "role", "content", *fields])
    marks = ", ".join("?" * (4 + len(fields)))
    with database_of(home) as database:
        [[last]] = database.execute("SELECT MAX(id) FROM messages")
        values = [last + 1, session, role, content, *fields.values()]
        database.execute(f"INSERT INTO messages ({names}) VALUES ({marks})", values)  # noqa: S608  # our own names


def test_every_session_is_listed_with_what_it_was(sessions: Sessions) -> None:
    found = {summary.native_id: summary for summary in sessions.list()}
    assert set(found) == {LONG, FORK, *OTHERS}  # and not that of the sub-agent
    long = found[LONG]
    assert (long.id, long.title, long.cwd) == (f"hermes:{LONG}", "first question", "/home/dev/project")
    assert (long.turn_count, long.tool_call_count, long.models) == (3, 7, ("fake-model",))
    assert (long.cost.input_tokens, long.cost.source) == (12 * 120, "unknown")  # those of the sub-agent, too
    assert found[FORK].forked_from == long.id
    assert found[FORK].cost.input_tokens == 120  # of the one call that it added


def test_tools_have_their_results(sessions: Sessions) -> None:
    tools = [tool for message in sessions.get(LONG).messages for tool in message.tools]
    write, patch, read, shell, echo, boom, subagent = tools
    assert [tool.name for tool in tools] == [
        "write_file", "patch", "read_file", "terminal", "echo/echo", "echo/boom", "subagent",
    ]  # fmt: skip
    assert write.input == {"path": "a.txt", "content": "one\n"}
    assert all(tool.error is None for tool in (write, patch, read, echo, subagent))
    assert (shell.error, boom.error, echo.output) == ("out", "boom failed", "echo: ping")
    assert "There are 3 files." in subagent.output


def test_file_tools_emit_file_events(sessions: Sessions) -> None:
    events: Any = [event for event in sessions.events(LONG) if event.type.startswith("file_")]
    assert [event.type for event in events] == ["file_write", "file_patch", "file_read"]
    assert events[1].diff == "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-one\n+two\n"


def test_user_messages_of_hermes_itself_are_no_prompts(sessions: Sessions) -> None:
    messages = sessions.get(LONG).messages
    assert [message.text for message in messages if message.role == "user"] == [
        "first question", "second question", "third question",
    ]  # fmt: skip
    kinds = [event.type for event in sessions.events(LONG)]
    assert kinds.count("turn_start") == 4  # one reports what the sub-agent did


@pytest.mark.parametrize("session", [TOOL_INTERRUPTED, TEXT_INTERRUPTED])
def test_an_interrupted_turn_ends_as_aborted(session: str, sessions: Sessions) -> None:
    events: Any = [event for event in sessions.events(session) if event.type == "error"]
    assert [event.code for event in events] == ["ABORTED"]
    assert "Operation interrupted." not in {message.text for message in sessions.get(session).messages}


def test_a_fork_has_the_texts_of_its_origin(sessions: Sessions) -> None:
    difference = sessions.diff(LONG, FORK)
    added = [message.text for change in difference.changes for message in change.added]
    assert added[-2:] == ["fork question", "Fork answer."]
    [total] = sessions.total_cost().values()
    assert total.input_tokens == (12 + 1 + 2 + 1) * 120


def test_the_events_keep_the_contract(sessions: Sessions) -> None:
    for summary in sessions.list():
        assert validate(list(sessions.events(summary.id))) == []


def test_withdrawn_messages_are_skipped(home: Path, sessions: Sessions) -> None:
    add_message(home, FAILED, "user", "never mind", active=0)
    assert [message.text for message in sessions.get(FAILED).messages] == ["eighth question"]


def test_a_compressed_conversation_is_not_repeated(home: Path, sessions: Sessions) -> None:
    with database_of(home) as database:
        database.execute("UPDATE messages SET active = 0, compacted = 1 WHERE session_id = ?", [TEXT_INTERRUPTED])
    add_message(home, TEXT_INTERRUPTED, "user", "[CONTEXT COMPACTION — REFERENCE ONLY] It was about a text.")
    add_message(home, TEXT_INTERRUPTED, "user", "seventh question")
    add_message(home, TEXT_INTERRUPTED, "assistant", "Continued.", finish_reason="stop")
    add_message(home, TEXT_INTERRUPTED, "user", "[System: Your previous response was truncated")
    add_message(home, TEXT_INTERRUPTED, "user", "new question")
    add_message(home, TEXT_INTERRUPTED, "user", "seventh question")  # not kept, but sent again
    assert [message.text for message in sessions.get(TEXT_INTERRUPTED).messages] == [
        "sixth question", "A long text that hangs here.", "seventh question", "Continued.", "new question",
        "seventh question",
    ]  # fmt: skip
    assert "context_compacted" in [event.type for event in sessions.events(TEXT_INTERRUPTED)]


def test_a_turn_that_reached_its_limit_ends_with_it(home: Path, sessions: Sessions) -> None:
    add_message(
        home, FAILED, "user", "You've reached the maximum number of tool-calling iterations allowed. Please sum up."
    )
    add_message(home, FAILED, "assistant", "I got half way.")
    assert [event.type for event in sessions.events(FAILED)].count("turn_limit") == 1
    assert sessions.get(FAILED).summary.turn_count == 1


def test_content_may_be_a_list_and_anything_may_be_damaged(home: Path, sessions: Sessions) -> None:
    parts = '[{"type": "text", "text": "look"}, {"type": "image_url"}]'
    add_message(home, FAILED, "user", f"\x00json:{parts}", timestamp="late")
    add_message(home, FAILED, "assistant", "", tool_calls="[{", reasoning="Hm.", finish_reason="tool_calls")
    add_message(home, FAILED, "tool", "{}", tool_call_id="nobody's")
    add_message(home, FAILED, "ghost", "boo")
    messages = sessions.get(FAILED).messages
    assert [(message.text, message.thinking) for message in messages[1:]] == [("look", ""), ("", "Hm.")]


def test_later_messages_are_read_by_the_next_pass(home: Path) -> None:
    [found] = [found for found in STORE.find(AgentPaths(environ={"HOME": str(home)})) if found.key == FAILED]
    cursor = STORE.open(found)
    assert len(list(cursor.read())) == 2  # what it is, and the prompt
    add_message(home, FAILED, "assistant", "Here I am.", finish_reason="stop")
    with database_of(home) as database:
        database.execute(
            "INSERT INTO session_model_usage (session_id, model, input_tokens, output_tokens, estimated_cost_usd, "
            "cost_status) VALUES (?, 'dear-model', 10, 2, 0.5, 'estimated')",
            [FAILED],
        )
    facts: list[Any] = [entry.fact for entry in cursor.read()]
    assert [type(fact).__name__ for fact in facts] == [
        "SessionDescribed",
        "StepBegin",
        "WholeText",
        "ModelCalled",
        "TurnDone",
    ]
    assert (facts[3].usage.input_tokens, facts[3].usd) == (10, 0.5)
    with database_of(home) as database:
        database.execute("UPDATE session_model_usage SET input_tokens = 15 WHERE model = 'dear-model'")
    facts = [entry.fact for entry in cursor.read()]
    assert (facts[1].usage.input_tokens, facts[1].usd) == (5, 0.0)  # what was added


def test_a_variable_moves_the_store(home: Path, sessions: Sessions) -> None:
    moved = Sessions(environ={"HOME": "/nowhere", "HERMES_HOME": str(home / ".hermes")})
    assert moved.list() == sessions.list()
    copied = SessionFilter(agent="hermes", directory=home / ".hermes")
    assert Sessions(environ={"HOME": "/nowhere"}).list(copied) == sessions.list()


def test_profiles_have_databases_of_their_own(home: Path, sessions: Sessions) -> None:
    profile = home / ".hermes" / "profiles" / "coder"
    profile.mkdir(parents=True)
    (home / ".hermes" / "state.db").rename(profile / "state.db")
    assert len(sessions.list()) == 5


def test_an_unreadable_database_is_skipped(tmp_path: Path) -> None:
    (tmp_path / ".hermes").mkdir()
    with database_of(tmp_path) as database:
        database.execute("CREATE TABLE messages (id INTEGER)")
    skipped: list[Any] = []
    sessions = Sessions(environ={"HOME": str(tmp_path)}, on_skipped=skipped.append)
    assert sessions.list(SessionFilter(agent="hermes")) == []
    assert "no such" in skipped[0].reason


def test_a_new_title_is_listed_although_the_time_of_the_session_is_unchanged(home: Path) -> None:
    sessions = Sessions(environ={"HOME": str(home)}, cache=home / "cache.sqlite")
    before = sessions.summary(LONG)
    with database_of(home) as database:
        database.execute("UPDATE sessions SET title = 'renamed' WHERE id = ?", (LONG,))
    after = {summary.native_id: summary for summary in sessions.list()}[LONG]
    assert (after.title, after.updated_at) == ("renamed", before.updated_at)
