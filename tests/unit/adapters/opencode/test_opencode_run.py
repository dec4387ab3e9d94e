"""The codec of `opencode run --format json`."""

import json
from typing import Any

import pytest
from opencode_transcript import new_codec
from tests.unit.adapters.codec_conversation import facts_of

from agent_mux.sdk import facts
from agent_mux.sdk.codec import CodecOutput, Exit, Refuse, Send, Source

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


def run(*lines: bytes, exit: Exit | None = None, **context: Any) -> list[CodecOutput]:  # noqa: A002
    codec = new_codec("run-json", **context)
    steps = [step for each in lines for step in codec.receive(each, Source.STDOUT)]
    return [*steps, *codec.finish(exit or Exit(code=0))]


TEXT = line("text", id="p1", text="hi", time={"start": 1, "end": 2})


def test_answered_run_is_done_at_exit() -> None:
    emitted = facts_of(run(line("step_start"), TEXT, finished()))
    assert [type(fact).__name__ for fact in emitted] == [
        "SessionKnown", "StepBegin", "TextDelta", "TextEnd", "Usage", "RunCost", "StepDone", "TurnDone",
    ]  # fmt: skip


def test_thinking_is_part_of_the_output() -> None:
    tokens = {"input": 120, "output": 7, "reasoning": 5, "cache": {"read": 30, "write": 0}}
    emitted = run(TEXT, line("step_finish", reason="stop", cost=0.5, tokens=tokens))
    assert facts.Usage(120, 12, thinking_tokens=5, cached_tokens=30, cache_creation_tokens=0) in emitted


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
def test_run_without_answer_or_exit_code_0_is_not_done(lines: list[bytes], ending: Exit) -> None:
    assert not any(isinstance(step, facts.TurnDone | facts.TurnFailed) for step in run(*lines, exit=ending))


def test_final_error_fails_the_turn() -> None:
    emitted = run(error({"name": "APIError", "data": {"message": "bad key", "statusCode": 401}}), exit=Exit(code=1))
    assert isinstance(emitted[-1], facts.TurnFailed)
    assert emitted[-1].failure.code == "AUTH_ERROR"
    assert "opencode auth login" in emitted[-1].failure.guidance


def test_a_filtered_answer_is_not_a_crash() -> None:
    message = "The response was blocked by the provider's content filter"
    emitted = run(error({"name": "UnknownError", "data": {"message": message}}), exit=Exit(code=1))
    assert emitted[-1].failure.code == "CONTENT_FILTERED"


def test_error_before_further_output_is_a_trouble() -> None:
    emitted = run(error({"name": "APIError", "data": {"message": "hm"}}), TEXT, finished())
    assert facts.RecoverableError("AGENT_CRASH", "hm") in emitted
    assert isinstance(emitted[-1], facts.TurnDone)


def test_message_after_an_overflow_is_the_summary() -> None:
    emitted = run(error(OVERFLOW), line("step_start"), TEXT, finished())
    assert not any(isinstance(step, facts.TextDelta | facts.TurnDone) for step in emitted)
    assert facts.ContextCompacted("hi") in emitted


def test_session_matches_the_options() -> None:
    assert run(TEXT, session_id=SESSION)[0] == facts.SessionKnown(SESSION, resumed=True)
    assert run(TEXT, fork_session_id="ses_0")[0] == facts.SessionKnown(SESSION, forked_from="ses_0")


def test_missing_session_is_read_from_stderr() -> None:
    codec = new_codec("run-json", session_id="ses_0")
    list(codec.receive(b"\x1b[91mError: \x1b[0mSession not found", Source.STDERR))
    [failed] = codec.finish(Exit(code=1))
    assert isinstance(failed, facts.TurnFailed)
    assert failed.failure.code == "SESSION_NOT_FOUND"


def test_rejected_permission_is_an_error_of_its_call() -> None:
    state = {"status": "error", "input": {"command": "ls"}, "error": "The user rejected permission"}
    emitted = run(line("tool_use", tool="bash", callID="c1", state=state), finished("tool-calls"))
    assert facts.ToolDone("c1", "", "The user rejected permission", stdout="") in emitted


def test_mcp_tool_is_recognized_by_its_name() -> None:
    state = {"status": "completed", "input": {"x": 1}, "output": "ok"}
    emitted = run(line("tool_use", tool="db_query_all", callID="c1", state=state))
    assert facts_of(emitted)[1:3] == [facts.McpBegin("c1", "db", "query_all", {"x": 1}), facts.McpDone("c1", "ok")]


def test_actions_are_refused() -> None:
    [refused] = new_codec("run-json").request(Send("more"))
    assert isinstance(refused, Refuse)


@pytest.mark.parametrize("odd", [b"plain words", b"3"])
def test_non_object_line_is_logged(odd: bytes) -> None:
    assert run(odd) == [facts.LogLine(odd.decode())]


@pytest.mark.parametrize(
    "odd", [b'{"type":"novelty"}', b'{"type":"text"}', b'{"type":5}', b'{"type":"text","part":{}}']
)
def test_unknown_shape_is_reported(odd: bytes) -> None:
    [emitted] = run(odd)
    assert isinstance(emitted, facts.Unknown)
