"""Stored sessions of the embedded agent, written with its own types and read as plain data."""

from pathlib import Path

import pytest

from agent_loop.events import ToolCalled, ToolResulted
from agent_loop.messages import AssistantMessage, Text, Thinking, ToolCall, ToolMessage, user
from agent_loop.sessions.session import LoopRecord, ParallelGroup, Session
from agent_loop.sessions.store import encode_session
from agent_loop.tools.effects import CommandRan, FileDeleted, FilePatched, FileRead, FileWritten
from agent_loop.usage import Usage
from agent_mux.sdk import facts
from agent_mux.sdk.config import AgentPaths
from agent_mux.sdk.sessions import ModelCalled, PromptSent, SessionDescribed, SessionEntry, UnreadableSessionError
from agent_mux_adapters.native.sessions import STORE


def stored(directory: Path, session: Session) -> Path:
    path = directory / "sessions" / f"{session.session_id}.json"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(encode_session(session))
    return path


def entries(directory: Path) -> list[SessionEntry]:
    (found,) = STORE.find(AgentPaths(environ={"AMUX_AGENT_HOME": str(directory)}))
    return list(STORE.open(found).read())


def loop(number: int, *messages: object, **known: object) -> LoopRecord:
    return LoopRecord(
        loop_id=f"l{number}",
        messages=list(messages),  # type: ignore[arg-type]
        **{  # type: ignore[arg-type]
            "parent_loop_id": f"l{number - 1}" if number else None,
            "status": "completed",
            "started_at": 1_000 + number,
            **known,
        },
    )


def answered(text: str) -> AssistantMessage:
    return AssistantMessage(content=(Text(text),), model="m", timestamp=7, usage=Usage(3, 4, cost_usd=0.5))


@pytest.mark.parametrize(("selected", "texts"), [("l1", ["before", "first"]), (None, ["before"])])
def test_selected_loop_of_a_parallel_run_is_the_current_one(
    tmp_path: Path, selected: str | None, texts: list[str]
) -> None:
    group = ParallelGroup(loop_ids=("l1", "l2"), selected_loop_id=selected)
    loops = [
        loop(0, user("go", timestamp=7), answered("before")),
        loop(1, user("again", timestamp=8), answered("first"), base=2, parallel_group=group),
        loop(2, user("again", timestamp=8), answered("second"), base=2, parent_loop_id="l0", parallel_group=group),
    ]
    stored(tmp_path, Session(session_id="s1", agent_id="a", loops=loops))
    said = [entry.fact.text for entry in entries(tmp_path) if isinstance(entry.fact, facts.WholeText)]
    assert said == texts


def test_stored_session_is_emitted_as_facts(tmp_path: Path) -> None:
    call = AssistantMessage(content=(Thinking("hm"), ToolCall("c1", "shell", {"command": "ls"})))
    result = ToolMessage(tool_call_id="c1", name="shell", content=(Text("a file"),))
    first = loop(0, user("go", timestamp=7), call, result, answered("done"))
    stored(tmp_path, Session(session_id="s1", agent_id="a", created_at=5, forked_from="s0", cwd="/w", loops=[first]))
    assert [entry.fact for entry in entries(tmp_path)] == [
        SessionDescribed(session_id="s1", cwd="/w", forked_from="s0"),
        PromptSent("go"),
        facts.StepBegin(),
        facts.WholeThinking("hm"),
        facts.ToolReady("c1", "shell", {"command": "ls"}),
        facts.ToolDone("c1", "a file", name="shell"),
        facts.StepBegin(),
        facts.WholeText("done"),
        ModelCalled("7/4", "m", facts.Usage(3, 4), 0.5),
        facts.TurnDone(),
    ]


def test_failed_command_is_an_error(tmp_path: Path) -> None:
    results = [
        ToolMessage(tool_call_id=str(code), name="shell", content=(Text("out"),), details={"exit_code": code})
        for code in (0, 3)
    ]
    stored(tmp_path, Session(session_id="s1", agent_id="a", loops=[loop(0, user("go"), *results)]))
    assert [entry.fact for entry in entries(tmp_path) if isinstance(entry.fact, facts.ToolDone)] == [
        facts.ToolDone("0", "out", exit_code=0, name="shell"),
        facts.ToolDone("3", error="out", exit_code=3, name="shell"),
    ]


def test_commands_and_files_come_from_the_loop_events(tmp_path: Path) -> None:
    call = ToolCall("c1", "shell", {"command": "ls"})
    result = ToolMessage(tool_call_id="c1", name="shell", content=(Text("a"),), details={"exit_code": 0})
    effects = (
        CommandRan(0, "a\n", ""), FileRead("r"), FileWritten("w", 3, created=True), FilePatched("p", "-"),
        FileDeleted("d"),
    )  # fmt: skip
    events = [
        ToolCalled(loop_id="l0", call=call, shell_command="ls"),
        ToolResulted(loop_id="l0", message=result, effects=effects),
    ]
    messages = [user("go"), AssistantMessage(content=(call,)), result]
    stored(tmp_path, Session(session_id="s1", agent_id="a", loops=[loop(0, *messages, events=events)]))
    assert [entry.fact for entry in entries(tmp_path) if isinstance(entry.fact, facts.ToolReady | facts.ToolDone)] == [
        facts.ToolReady("c1", "shell", {"command": "ls"}, facts.ShellInvocation("ls")),
        facts.ToolDone(
            "c1",
            "a",
            stdout="a\n",
            exit_code=0,
            files=(
                facts.FileRead("r"), facts.FileWritten("w", 3, created=True), facts.FilePatched("p", "-"),
                facts.FileDeleted("d"),
            ),
            name="shell",
        ),
    ]  # fmt: skip


def test_abandoned_messages_are_omitted(tmp_path: Path) -> None:
    two = loop(1, user("two"), answered("2"), base=2)
    loops = [loop(0, user("one"), answered("1")), two, loop(2, user("other"), base=2)]
    stored(tmp_path, Session(session_id="s1", agent_id="a", loops=loops))
    assert [entry.fact.text for entry in entries(tmp_path) if isinstance(entry.fact, PromptSent)] == ["one", "other"]


@pytest.mark.parametrize(
    ("known", "closing"),
    [
        ({"status": "failed", "error": "no"}, facts.TurnFailed(facts.Failure("INTERNAL", "no"))),
        ({"status": "aborted"}, facts.TurnStopped()),
        ({"status": "limited"}, facts.TurnLimitHit()),
        ({"status": "rejected", "rejection": "no"}, facts.TurnFailed(facts.Failure("INTERNAL", "no"))),
        ({"status": "running"}, PromptSent("go")),
    ],
)
def test_loop_status_becomes_the_closing_fact(tmp_path: Path, known: dict[str, object], closing: object) -> None:
    stored(tmp_path, Session(session_id="s1", agent_id="a", loops=[loop(0, user("go"), **known)]))
    assert entries(tmp_path)[-1].fact == closing


def test_grown_session_is_read_incrementally(tmp_path: Path) -> None:
    session = Session(session_id="s1", agent_id="a", loops=[loop(0, user("one"))])
    stored(tmp_path, session)
    (found,) = STORE.find(AgentPaths(environ={"AMUX_AGENT_HOME": str(tmp_path)}))
    cursor = STORE.open(found)
    assert len(list(cursor.read())) == 3
    assert list(cursor.read()) == []
    session.loops.append(loop(1, user("two"), base=1))
    stored(tmp_path, session)
    assert [entry.fact for entry in cursor.read()] == [PromptSent("two"), facts.TurnDone()]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"{}",
        b'{"format": 1, "session": {"session_id": 3}}',
        b'{"format": 2, "session": {"session_id": "x"}}',
        b"\xff",
    ],
)
def test_invalid_session_is_reported(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "sessions").mkdir()
    (tmp_path / "sessions" / "x.json").write_bytes(data)
    (tmp_path / "sessions" / ".x.json").write_bytes(data)
    with pytest.raises(UnreadableSessionError):
        entries(tmp_path)
