"""What `opencode run --format json` means."""

import json
from typing import Any

import pytest
from opencode_transcript import new_codec
from tests.unit.adapters.talking import facts_of

from agent_mux import facts
from agent_mux.actions import Send
from agent_mux.adapter import Exit, Source, Step
from agent_mux.effects import Refuse

SESSION = "ses_1"
OVERFLOW = {"name": "ContextOverflowError", "data": {"message": "too long"}}


def line(kind: str, **part: Any) -> bytes:
    return json.dumps(
        {"type": kind, "timestamp": 1, "sessionID": SESSION, "part": {"messageID": "m1", **part}}
    ).encode()


def error(value: Any) -> bytes:
    return json.dumps({"type": "error", "timestamp": 1, "sessionID": SESSION, "error": value}).encode()


def finished(reason: str = "stop", **part: Any) -> bytes:
    return line("step_finish", reason=reason, cost=0.5, tokens={"input": 1}, **part)


def run(*lines: bytes, exit: Exit | None = None, **context: Any) -> list[Step]:  # noqa: A002
    codec = new_codec("run-json", **context)
    steps = [step for each in lines for step in codec.receive(each, Source.STDOUT)]
    return [*steps, *codec.finish(exit or Exit(code=0))]


TEXT = line("text", id="p1", text="hi", time={"start": 1, "end": 2})


def test_a_run_that_answers_is_done_when_it_exits() -> None:
    told = facts_of(run(line("step_start"), TEXT, finished()))
    assert [type(fact).__name__ for fact in told] == [
        "SessionKnown", "StepBegin", "TextDelta", "TextEnd", "Usage", "RunCost", "StepDone", "TurnDone",
    ]  # fmt: skip


def test_thinking_is_part_of_the_output() -> None:
    tokens = {"input": 120, "output": 7, "reasoning": 5, "cache": {"read": 30, "write": 0}}
    told = run(TEXT, line("step_finish", reason="stop", cost=0.5, tokens=tokens))
    assert facts.Usage(120, 12, thinking_tokens=5, cached_tokens=30, cache_creation_tokens=0) in told


@pytest.mark.parametrize(
    ("lines", "ending"),
    [
        ([finished("tool-calls")], Exit(code=0)),
        ([TEXT], Exit(code=0)),
        ([finished()], Exit(code=1)),
        ([finished()], Exit(signal=15)),
        ([error(OVERFLOW)], Exit(signal=9)),
        ([], Exit(code=0)),
    ],
)
def test_without_a_last_answer_and_a_good_exit_nothing_is_done(lines: list[bytes], ending: Exit) -> None:
    assert not any(isinstance(step, facts.TurnDone | facts.TurnFailed) for step in run(*lines, exit=ending))


def test_an_error_that_nothing_follows_fails_the_turn() -> None:
    told = run(error({"name": "APIError", "data": {"message": "bad key", "statusCode": 401}}), exit=Exit(code=1))
    assert isinstance(told[-1], facts.TurnFailed)
    assert told[-1].failure.code == "AUTH_ERROR"
    assert "opencode auth login" in told[-1].failure.guidance


def test_an_error_that_something_follows_is_a_trouble() -> None:
    told = run(error({"name": "APIError", "data": {"message": "hm"}}), TEXT, finished())
    assert facts.Trouble("AGENT_CRASH", "hm") in told
    assert isinstance(told[-1], facts.TurnDone)


def test_after_an_overflow_the_next_message_is_a_summary_and_no_answer() -> None:
    told = run(error(OVERFLOW), line("step_start"), TEXT, finished())
    assert not any(isinstance(step, facts.TextDelta | facts.TurnDone) for step in told)
    assert facts.ContextCompacted("hi") in told


def test_the_session_is_what_was_asked_for() -> None:
    assert run(TEXT, session_id=SESSION)[0] == facts.SessionKnown(SESSION, resumed=True)
    assert run(TEXT, fork_session_id="ses_0")[0] == facts.SessionKnown(SESSION, forked_from="ses_0")


def test_a_session_that_is_not_there_is_known_by_what_is_printed() -> None:
    codec = new_codec("run-json", session_id="ses_0")
    list(codec.receive(b"\x1b[91mError: \x1b[0mSession not found", Source.STDERR))
    [failed] = codec.finish(Exit(code=1))
    assert isinstance(failed, facts.TurnFailed)
    assert failed.failure.code == "SESSION_NOT_FOUND"


def test_a_refused_permission_is_an_error_of_its_call() -> None:
    state = {"status": "error", "input": {"command": "ls"}, "error": "The user rejected permission"}
    told = run(line("tool_use", tool="bash", callID="c1", state=state), finished("tool-calls"))
    assert facts.ToolDone("c1", "", "The user rejected permission", stdout="") in told


def test_a_tool_of_an_mcp_server_is_known_by_its_name() -> None:
    state = {"status": "completed", "input": {"x": 1}, "output": "ok"}
    told = run(line("tool_use", tool="db_query_all", callID="c1", state=state))
    assert facts_of(told)[1:3] == [facts.McpBegin("c1", "db", "query_all", {"x": 1}), facts.McpDone("c1", "ok")]


def test_nobody_can_ask_it_for_anything() -> None:
    [refused] = new_codec("run-json").request(Send("more"))
    assert isinstance(refused, Refuse)


@pytest.mark.parametrize("odd", [b"plain words", b"3"])
def test_what_is_no_object_is_a_log_line(odd: bytes) -> None:
    assert run(odd) == [facts.LogLine(odd.decode())]


@pytest.mark.parametrize(
    "odd", [b'{"type":"novelty"}', b'{"type":"text"}', b'{"type":5}', b'{"type":"text","part":{}}']
)
def test_what_cannot_be_understood_is_unknown(odd: bytes) -> None:
    [told] = run(odd)
    assert isinstance(told, facts.Unknown)
