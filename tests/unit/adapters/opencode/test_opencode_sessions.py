"""Stored sessions of OpenCode 1.18.33; tests/stores/README.md describes how they were made."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from agent_mux import validate
from agent_mux.sdk import facts
from agent_mux.sdk.sessions import FoundSession, ModelCalled, PromptSent
from agent_mux.sessions.client import Sessions
from agent_mux.sessions.summary import SessionFilter
from agent_mux_adapters.opencode.sessions import STORE

RECORDED = Path(__file__).parents[3] / "stores" / "opencode" / "1.18.33" / "opencode.sql"
ORIGIN, FORK = "ses_dfcb7acf5ffeDST7ae1e1VRHb8", "ses_dfcb7209dffenGWPIh5Rm2mlHw"
THIRD = "msg_203487b2e001jW1fZT59OnYe33"
PER_CALL = 0.000144  # USD


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / ".local" / "share" / "opencode" / "opencode.db"
    path.parent.mkdir(parents=True)
    with closing(sqlite3.connect(path)) as database:
        database.executescript(f"BEGIN;\n{RECORDED.read_text('utf-8')}COMMIT;")
    return path


@pytest.fixture
def database(path: Path) -> Iterator[sqlite3.Connection]:
    """Return a writer for what the agent stores next."""
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        yield database


@pytest.fixture
def skipped() -> list[Any]:
    return []


@pytest.fixture
def sessions(path: Path, tmp_path: Path, skipped: list[Any]) -> Sessions:
    return Sessions(environ={"HOME": str(tmp_path)}, on_skipped=skipped.append)


def prompts(sessions: Sessions, session: str = ORIGIN) -> list[str]:
    return [message.text for message in sessions.get(session).messages if message.role == "user"]


def test_sessions_are_listed_with_their_metadata(sessions: Sessions, skipped: list[Any]) -> None:
    found = {summary.native_id: summary for summary in sessions.list()}
    assert set(found) == {ORIGIN, FORK}  # not that of the sub-agent
    origin = found[ORIGIN]
    assert (origin.id, origin.title, origin.cwd) == (f"opencode:{ORIGIN}", "first question", "/home/dev/project")
    assert (origin.agent_version, origin.models) == ("1.18.33", ("scripted/scripted",))
    assert (origin.turn_count, origin.tool_call_count) == (5, 6)
    assert origin.cost.source == "native"
    # Seven calls, and one of the sub-agent; output tokens include thinking.
    assert origin.cost.total_usd == pytest.approx(8 * PER_CALL)
    assert (origin.cost.input_tokens, origin.cost.output_tokens, origin.cost.cached_tokens) == (960, 96, 240)
    assert skipped == []


def test_messages_are_emitted_with_their_turns(sessions: Sessions) -> None:
    assert prompts(sessions) == [f"{which} question" for which in ("first", "second", "third", "fourth", "fifth")]
    messages = sessions.get(ORIGIN).messages
    answers = [message.text for message in messages if message.role == "assistant" and message.text]
    assert answers == ["Writing.", "First answer.", "Third answer.", "Waiting.", "Fifth answer."]
    [failed] = [message for message in messages if message.error is not None]
    assert (failed.turn, failed.error) == (1, "Incorrect API key provided.")


def test_tools_have_their_results(sessions: Sessions) -> None:
    tools = [tool for message in sessions.get(ORIGIN).messages for tool in message.tools]
    write, edit, read, shell, subagent, stopped = tools
    assert (write.name, write.output, write.error) == ("write", "Wrote file successfully.", None)
    assert (edit.name, edit.input["newString"]) == ("edit", "two")
    assert (read.name, read.error) == ("read", "File not found: /home/dev/project/missing.txt")
    assert (shell.name, shell.output, shell.error) == ("bash", "out\n", "out\n")
    assert (subagent.name, subagent.output) == ("general", "Three files.")
    assert stopped.error is not None
    assert "User aborted the command" in stopped.error


def test_the_events_keep_the_contract(sessions: Sessions) -> None:
    for summary in sessions.list():
        events = list(sessions.events(summary.id))
        assert validate(events) == []
        assert [event.type for event in events].count("turn_start") == summary.turn_count
    kinds = [event.type for event in sessions.events(ORIGIN)]
    assert [kind for kind in kinds if kind.startswith(("file_", "shell_"))] == [
        "file_create", "file_patch", "shell_start", "shell_stdout_delta", "shell_exit", "shell_start", "shell_exit",
    ]  # fmt: skip
    assert kinds.count("subagent_spawn") == kinds.count("subagent_result") == 1
    errors = [getattr(event, "code") for event in sessions.events(ORIGIN) if event.type == "error"]  # noqa: B009
    assert errors == ["AUTH_ERROR", "ABORTED"]


def test_fork_contains_copied_messages_and_costs_its_own_calls(sessions: Sessions) -> None:
    difference = sessions.diff(ORIGIN, FORK)
    assert [[message.text for message in change.added] for change in difference.changes] == [
        ["another question", "Another answer."],
    ]  # fmt: skip
    [total] = sessions.total_cost().values()
    assert (total.calls, total.native_usd) == (9, pytest.approx(9 * PER_CALL))


def test_database_path_can_be_configured(sessions: Sessions, path: Path) -> None:
    listed = sessions.list()
    assert Sessions(environ={"XDG_DATA_HOME": str(path.parents[1])}).list() == listed
    assert Sessions(environ={"HOME": "/nowhere", "OPENCODE_DB": str(path)}).list() == listed
    copied = SessionFilter(agent="opencode", directory=path.parent)
    assert Sessions(environ={"HOME": "/nowhere"}).list(copied) == listed
    assert Sessions(environ={"HOME": "/nowhere"}).list() == []


def test_reverted_messages_are_omitted_but_their_cost_counts(sessions: Sessions, database: sqlite3.Connection) -> None:
    [before] = [summary.cost for summary in sessions.list() if summary.native_id == ORIGIN]
    database.execute("UPDATE session SET revert = ? WHERE id = ?", (json.dumps({"messageID": THIRD}), ORIGIN))
    assert prompts(sessions) == ["first question", "second question"]
    assert sessions.get(ORIGIN).summary.cost == before


def test_message_may_be_partly_reverted(sessions: Sessions, database: sqlite3.Connection) -> None:
    [[message, part]] = database.execute(
        'SELECT message_id, id FROM part WHERE session_id = ? AND data LIKE \'%"callID":"call_1006"%\'', (ORIGIN,)
    ).fetchall()
    reverted = json.dumps({"messageID": message, "partID": part})
    database.execute("UPDATE session SET revert = ? WHERE id = ?", (reverted, ORIGIN))
    assert prompts(sessions) == ["first question"]
    tools = [tool.name for message in sessions.get(ORIGIN).messages for tool in message.tools]
    assert tools == ["write", "edit"]


class Written:
    """A session that is still being written, and its reader."""

    def __init__(self, path: Path, database: sqlite3.Connection) -> None:
        self._database = database
        self._cursor = STORE.open(FoundSession(path, ORIGIN, 0, 0))
        self.at = 1_795_351_500_000
        self.read()

    def read(self) -> list[Any]:
        emitted = [entry.fact for entry in self._cursor.read()]
        return [fact for fact in emitted if fact.__class__.__name__ != "SessionDescribed"]

    def message(self, name: str, role: str, **info: Any) -> None:
        info = {"role": role, "time": {"created": self.at}, **info}
        self._write("message", (name, ORIGIN, self.at, self.at, json.dumps(info)))

    def part(self, name: str, message: str, **data: Any) -> None:
        self._write("part", (name, message, ORIGIN, self.at, self.at, json.dumps(data)))

    def _write(self, table: str, row: tuple[Any, ...]) -> None:
        self._database.execute(f"REPLACE INTO {table} VALUES ({', '.join('?' * len(row))})", row)  # noqa: S608


@pytest.fixture
def written(path: Path, database: sqlite3.Connection) -> Written:
    return Written(path, database)


def test_unfinished_messages_are_emitted_as_they_complete(written: Written) -> None:
    written.message("msg_3", "user")
    assert written.read() == []  # its parts follow
    written.part("prt_30", "msg_3", type="text", text="sixth question")
    assert written.read() == [PromptSent("sixth question", "msg_3")]
    written.at += 1
    written.message("msg_4", "assistant")
    written.part("prt_40", "msg_4", type="step-start")
    written.part("prt_41", "msg_4", type="text", text="", time={"start": 1})
    assert written.read() == [facts.StepBegin()]
    written.part("prt_41", "msg_4", type="text", text="Sixth answer.", time={"start": 1, "end": 2})
    state = {"status": "pending", "input": {}}
    written.part("prt_42", "msg_4", type="tool", tool="read", callID="call_1", state=state)
    assert written.read() == [facts.WholeText("Sixth answer.")]
    state = {"status": "running", "input": {"filePath": "/a"}}
    written.part("prt_42", "msg_4", type="tool", tool="read", callID="call_1", state=state)
    [ready] = written.read()
    assert (ready.call_id, ready.input) == ("call_1", {"filePath": "/a"})
    assert written.read() == []
    state = {"status": "completed", "input": {"filePath": "/a"}, "output": "one"}
    written.part("prt_42", "msg_4", type="tool", tool="read", callID="call_1", state=state)
    tokens = {"input": 1, "output": 2}
    time = {"created": written.at, "completed": written.at + 1}
    written.message("msg_4", "assistant", time=time, finish="stop", tokens=tokens, modelID="m", structured={"a": 1})
    done, called, closing = written.read()
    assert (done.call_id, done.output) == ("call_1", "one")
    assert isinstance(called, ModelCalled)
    assert (called.model, called.usage.output_tokens, called.usd) == ("m", 2, None)
    assert closing == facts.TurnDone(structured_output={"a": 1})
    assert written.read() == []


def test_compaction_is_neither_prompt_nor_answer(written: Written) -> None:
    time = {"created": written.at, "completed": written.at}
    overflow = {"name": "ContextOverflowError", "data": {"message": "too long"}}
    written.message("msg_3", "assistant", time=time, error=overflow)
    written.message("msg_4", "user")
    written.part("prt_40", "msg_4", type="compaction", auto=True)
    written.message("msg_5", "assistant", time=time, summary=True, finish="stop")
    written.part("prt_50", "msg_5", type="step-start")
    written.part("prt_51", "msg_5", type="text", text="All of it, in short.")
    written.message("msg_6", "user")
    written.part("prt_60", "msg_6", type="text", text="Continue if you have next steps.", synthetic=True)
    compacted, failed = written.read()
    assert compacted == facts.ContextCompacted("All of it, in short.")
    assert failed.failure.code == "CONTEXT_EXCEEDED"  # it was the last message


def test_user_command_does_not_affect_the_turn(written: Written) -> None:
    time = {"created": written.at, "completed": written.at}
    written.message("msg_3", "user")
    written.part("prt_30", "msg_3", type="text", text="The user ran a tool.", synthetic=True)
    written.message("msg_4", "assistant", time=time)
    written.part("prt_40", "msg_4", type="text", text="no", synthetic=True)
    written.part("prt_41", "msg_4", type="tool")  # damaged
    written.message("msg_5", "unknown")
    assert written.read() == []


def test_deleted_session_is_reported(sessions: Sessions, database: sqlite3.Connection, path: Path) -> None:
    cursor = STORE.open(FoundSession(path, "ses_gone", 0, 0))
    with pytest.raises(Exception, match="no longer contains this session"):
        list(cursor.read())


def test_foreign_database_is_skipped_with_a_reason(tmp_path: Path, path: Path, skipped: list[Any]) -> None:
    path.unlink()
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE session (id TEXT)")
    assert Sessions(environ={"HOME": str(tmp_path)}, on_skipped=skipped.append).list() == []
    [emitted] = skipped
    assert "cannot be read" in str(emitted)


def test_each_prompt_is_a_checkpoint_with_the_id_of_its_message(sessions: Sessions) -> None:
    found = sessions.checkpoints(ORIGIN)
    assert [one.prompt for one in found] == prompts(sessions)
    assert all(one.id.startswith("msg_") for one in found)
    assert THIRD in {one.id for one in found}


def test_a_new_title_is_listed_although_the_time_of_the_session_is_unchanged(
    path: Path, tmp_path: Path, database: sqlite3.Connection
) -> None:
    sessions = Sessions(environ={"HOME": str(tmp_path)}, cache=tmp_path / "cache.sqlite")
    before = sessions.summary(ORIGIN)
    database.execute("UPDATE session SET title = 'renamed' WHERE id = ?", (ORIGIN,))
    after = {summary.native_id: summary for summary in sessions.list()}[ORIGIN]
    assert (after.title, after.updated_at) == ("renamed", before.updated_at)
