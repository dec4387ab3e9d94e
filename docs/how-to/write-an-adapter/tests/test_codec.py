"""The lines of Qwen Code that differ from the dialect."""

import json
from typing import Any

import pytest
from amux_qwen.codec import QwenCodec

from agent_mux.sdk import facts
from agent_mux.sdk.codec import AnswerAction, CodecContext, CodecOutput, Exit, Source, WriteStdin

INIT = {"type": "system", "subtype": "init", "session_id": "s", "cwd": "/w", "permission_mode": "yolo"}
TOKENS = {"input_tokens": 150, "output_tokens": 12, "cache_read_input_tokens": 30}
NO_TOKENS = {"input_tokens": 0, "output_tokens": 0}
CALL = facts.Usage(input_tokens=120, output_tokens=12, cached_tokens=30)


def new_codec(protocol: str = "stream-json", **context: Any) -> QwenCodec:
    return QwenCodec(CodecContext(agent="qwen", protocol=protocol, **context))


def receive(codec: QwenCodec, *lines: Any, source: Source = Source.STDOUT) -> list[CodecOutput]:
    return [step for line in lines for step in codec.receive(json.dumps(line).encode(), source)]


def assistant(*blocks: Any, usage: Any = None, identity: str = "m", parent: str | None = None) -> dict[str, Any]:
    message = {"id": identity, "role": "assistant", "content": list(blocks), "usage": usage or NO_TOKENS}
    return {"type": "assistant", "parent_tool_use_id": parent, "message": message}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def use(name: str, call_id: str = "c", **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": name, "input": arguments}


def tool_result(content: str, call_id: str = "c", *, is_error: bool = False) -> dict[str, Any]:
    block = {"type": "tool_result", "tool_use_id": call_id, "content": content, "is_error": is_error}
    return {"type": "user", "parent_tool_use_id": None, "message": {"role": "user", "content": [block]}}


def result(*, error: str = "", **usage: Any) -> dict[str, Any]:
    how = {"is_error": True, "error": {"message": error}} if error else {"is_error": False}
    return {"type": "result", "subtype": "success", "usage": usage, **how}


def event(**fields: Any) -> dict[str, Any]:
    return {"type": "stream_event", "parent_tool_use_id": None, "event": fields}


def retry(**data: Any) -> dict[str, Any]:
    return {"type": "system", "subtype": "retry", "data": {"reason": "retry", **data}}


def of(kind: type, steps: list[CodecOutput]) -> list[Any]:
    return [step for step in steps if isinstance(step, kind)]


# -- messages and model calls


def test_the_lines_of_one_model_call_have_different_ids() -> None:
    steps = receive(
        new_codec(),
        INIT,
        assistant(text("One."), identity="a"),
        assistant(use("glob"), identity="b", usage=TOKENS),
        tool_result("none"),
        assistant(text("Two."), identity="c", usage=TOKENS),
    )
    assert len(of(facts.StepBegin, steps)) == 2
    assert of(facts.Usage, steps) == [CALL, CALL]


def test_api_error_emits_no_message() -> None:
    words = "[API Error: 401 Incorrect API key provided: dummy]"
    delta = event(type="content_block_delta", index=0, delta={"type": "text_delta", "text": words})
    steps = receive(new_codec(), INIT, delta, assistant(text(words)), result(error=words))
    assert of(facts.WholeText, steps) == of(facts.TextDelta, steps) == []
    [failed] = of(facts.TurnFailed, steps)
    assert (failed.failure.code, failed.failure.message) == ("AUTH_ERROR", "401 Incorrect API key provided: dummy")
    assert "OPENAI_API_KEY" in failed.failure.guidance


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ("[API Error: 429 Rate limit reached]", "RATE_LIMITED"),
        ("[API Error: 400 maximum context length is 10 tokens]", "CONTEXT_EXCEEDED"),
        ("[API Error: 500 out of order]", "AGENT_CRASH"),
    ],
)
def test_failures_have_codes(message: str, code: str) -> None:
    [failed] = of(facts.TurnFailed, receive(new_codec(), INIT, result(error=message)))
    assert failed.failure.code == code


def test_error_of_an_interruption_stops_the_turn() -> None:
    assert of(facts.TurnStopped, receive(new_codec(), INIT, result(error="Operation cancelled.")))


def test_announced_retry_is_emitted_once() -> None:
    announced = retry(attempt=1, maxRetries=10, delayMs=60_000)
    steps = receive(new_codec(), INIT, announced, retry(), retry())
    assert of(facts.Retrying, steps) == [
        facts.Retrying(1, 10, "retry", 60_000),
        facts.Retrying(1, 0, "retry", 0),
    ]


@pytest.mark.parametrize("own", ["goal_state", "tool_progress"])
def test_own_events_are_ignored(own: str) -> None:
    [fact] = receive(new_codec(), event(type=own, state={"v": 2}))
    assert isinstance(fact, facts.Ignored)


@pytest.mark.parametrize("kind", [None, 7, [], {}])
def test_unexpected_types_are_unknown(kind: Any) -> None:
    [fact] = receive(new_codec(), event(type=kind))
    assert isinstance(fact, facts.Unknown)


# -- tools


def test_only_failed_commands_report_their_exit_code() -> None:
    run = assistant(use("run_shell_command", command="x", is_background=False), usage=TOKENS)
    report = "Command: x\nDirectory: (root)\nOutput: no\nError: (none)\nExit Code: 3\nSignal: (none)\n"
    [done] = of(facts.ToolDone, receive(new_codec(), INIT, run, tool_result(report, is_error=True)))
    assert (done.exit_code, done.stdout, done.error) == (3, "no", "no")
    [done] = of(facts.ToolDone, receive(new_codec(), INIT, run, tool_result("yes")))
    assert (done.exit_code, done.stdout, done.output) == (0, "yes", "yes")


def test_background_command_emits_no_shell_facts() -> None:
    run = assistant(use("run_shell_command", command="x", is_background=True), usage=TOKENS)
    [ready] = of(facts.ToolReady, receive(new_codec(), INIT, run))
    assert ready.shell is None


def test_result_text_decides_between_created_and_overwritten() -> None:
    write = assistant(use("write_file", file_path="/w/a", content="é\n"), usage=TOKENS)
    [done] = of(
        facts.ToolDone, receive(new_codec(), INIT, write, tool_result("Successfully created and wrote to new file"))
    )
    assert done.files == (facts.FileWritten("/w/a", 3, True),)
    [done] = of(facts.ToolDone, receive(new_codec(), INIT, write, tool_result("Successfully overwrote file: /w/a.")))
    assert done.files == (facts.FileWritten("/w/a", 3, False),)


def test_notification_ends_a_background_sub_agent() -> None:
    codec = new_codec()
    begin = assistant(use("agent", subagent_type="general-purpose", prompt="count"), usage=TOKENS)
    steps = receive(codec, INIT, begin, tool_result("Background agent launched successfully."))
    assert len(of(facts.SubagentBegin, steps)) == 1
    assert of(facts.SubagentDone, steps) == []
    line = {"type": "system", "subtype": "task_notification", "data": {"tool_use_id": "c", "status": "completed"}}
    assert receive(codec, line) == [facts.SubagentDone("c")]
    assert isinstance(receive(codec, line)[0], facts.Ignored)


# -- tokens


def test_session_total_is_not_counted_again() -> None:
    double = {name: 2 * value for name, value in TOKENS.items()}
    codec = new_codec("stream-json-two-way", prompt="go")
    steps = receive(codec, INIT, assistant(text("1"), usage=TOKENS), result(**TOKENS))
    steps += receive(codec, INIT, assistant(text("2"), usage=TOKENS), result(**double))
    assert of(facts.Usage, steps) == [CALL, CALL]


def test_unreported_tokens_are_derived_from_the_session_total() -> None:
    double = {name: 2 * value for name, value in TOKENS.items()}
    codec = new_codec("stream-json-two-way", prompt="go")
    assert of(facts.Usage, receive(codec, INIT, assistant(text("1"), usage=TOKENS), result(**double))) == [CALL, CALL]


def test_total_of_a_resumed_session_includes_earlier_runs() -> None:
    much = {name: 9 * value for name, value in TOKENS.items()}
    codec = new_codec("stream-json-two-way", prompt="go", session_id="s")
    assert of(facts.Usage, receive(codec, INIT, assistant(text("1"), usage=TOKENS), result(**much))) == [CALL]


# -- the handshake and the end


def test_handshake_contains_effort_and_approval_timeout() -> None:
    effects = new_codec("stream-json-two-way", prompt="go", thinking_effort="low").start()
    hello = json.loads(next(step.data for step in effects if isinstance(step, WriteStdin)))
    assert hello["request"]["effort"] == "low"
    assert hello["request"]["timeout"] == {"canUseTool": 600_000}


def test_answers_are_keyed_by_number() -> None:
    codec = new_codec("stream-json-two-way", prompt="go")
    questions = [{"question": "Which?", "header": "Colour", "options": [{"label": "red"}, {"label": "blue"}]}]
    asked = {"subtype": "can_use_tool", "tool_name": "ask_user_question", "tool_use_id": "c"}
    line = {"type": "control_request", "request_id": "r", "request": {**asked, "input": {"questions": questions}}}
    [question] = of(facts.InputRequested, receive(codec, INIT, assistant(use("ask_user_question"), usage=TOKENS), line))
    steps = codec.request(AnswerAction(question.request_id, "blue"))
    written = json.loads(next(step.data for step in steps if isinstance(step, WriteStdin)))
    assert written["response"]["response"]["updatedInput"]["answers"] == {"0": "blue"}


def test_exit_code_reports_the_turn_limit() -> None:
    codec = new_codec(max_turns=2)
    receive(codec, INIT, assistant(use("glob"), usage=TOKENS))
    assert codec.finish(Exit(53, None)) == (facts.TurnLimitHit(2),)


def test_missing_session_is_read_from_stderr() -> None:
    codec = new_codec(session_id="gone")
    codec.receive(b"No saved session found with ID gone", Source.STDERR)
    [failed] = codec.finish(Exit(1, None))
    assert isinstance(failed, facts.TurnFailed)
    assert failed.failure.code == "SESSION_NOT_FOUND"
