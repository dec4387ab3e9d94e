"""The traps of cursor-agent's stream, line by line."""

import json
from pathlib import Path
from typing import Any

import pytest

from agent_mux.sdk import facts
from agent_mux.sdk.codec import (
    AnswerAction,
    ApproveAction,
    Cancel,
    Close,
    CodecContext,
    CodecOutput,
    DenyAction,
    Exit,
    Interrupt,
    Refuse,
    Send,
    SignalGroup,
    Source,
    Steer,
)
from agent_mux.sdk.native_json import load_object
from agent_mux_adapters.cursor import ADAPTER
from agent_mux_adapters.cursor.codec import CursorCodec
from agent_mux_adapters.cursor.tool_calls import edit_effects
from agent_mux_testing.fixtures import find_fixtures, load_fixture

PATH = "/home/dev/project/a.txt"


def new_codec(**context: Any) -> CursorCodec:
    return CursorCodec(CodecContext(agent="cursor", protocol="stream-json", **context))


def receive(codec: CursorCodec, *lines: Any) -> list[CodecOutput]:
    raw = [line if isinstance(line, bytes) else json.dumps(line, separators=(",", ":")).encode() for line in lines]
    return [step for line in raw for step in codec.receive(line, Source.STDOUT)]


def whole(text: str, **extra: Any) -> dict[str, Any]:
    return {"type": "assistant", "message": {"role": "assistant", "content": [{"type": "text", "text": text}]}, **extra}


def fragment(text: str) -> dict[str, Any]:
    return whole(text, session_id="s", timestamp_ms=1)


def thought(text: str) -> dict[str, Any]:
    return {"type": "thinking", "subtype": "delta", "text": text, "session_id": "s", "timestamp_ms": 1}


def started(call_id: str, key: str = "shellToolCall", model_call: str = "m-0", **args: Any) -> dict[str, Any]:
    tool = {key: {"args": args or {"command": "ls", "workingDirectory": ""}}}
    line = {"type": "tool_call", "subtype": "started", "call_id": call_id, "tool_call": tool}
    return {**line, "model_call_id": model_call} if model_call else line


def completed(call_id: str, result: Any, key: str = "shellToolCall", **siblings: Any) -> dict[str, Any]:
    tool = {**siblings, key: {"result": result}}
    return {"type": "tool_call", "subtype": "completed", "call_id": call_id, "tool_call": tool}


def texts(steps: list[CodecOutput]) -> list[str]:
    """The messages: fragments joined."""
    messages, streamed = [], ""
    for step in steps:
        match step:
            case facts.TextDelta(text):
                streamed += text
            case facts.TextEnd() if streamed:
                messages.append(streamed)
                streamed = ""
            case facts.WholeText(text):
                messages.append(text)
    return [*messages, *([streamed] if streamed else [])]


def steps_begun(steps: list[CodecOutput]) -> int:
    return sum(isinstance(step, facts.StepBegin) for step in steps)


# -- text: everything is printed twice


def test_message_that_repeats_its_fragments_is_not_emitted() -> None:
    codec = new_codec()
    emitted = receive(codec, fragment("Hel"), fragment("lo"), whole("Hello", model_call_id="m-0", timestamp_ms=2))
    assert texts(emitted) == ["Hello"]
    assert texts(receive(codec, started("c"), fragment("Bye"), whole("Bye"))) == ["Bye"]


def test_message_without_fragments_is_emitted_whole() -> None:
    emitted = receive(new_codec(), whole("One", model_call_id="m-0", timestamp_ms=2), whole("One"))
    assert texts(emitted) == ["One", "One"]


def test_the_last_message_may_repeat_the_whole_turn() -> None:
    codec = new_codec()
    emitted = receive(
        codec,
        fragment("A"),
        whole("A", model_call_id="m-0", timestamp_ms=2),
        fragment("B"),
        whole("AB"),
    )
    assert texts(emitted) == ["A", "B"]
    emitted = receive(codec, whole("AB"))
    assert texts(emitted) == []
    assert all(isinstance(fact, facts.Ignored) for fact in emitted)


def test_rest_of_a_partly_streamed_message_is_emitted() -> None:
    assert texts(receive(new_codec(), fragment("Hel"), whole("Hello"))) == ["Hello"]


def test_fragment_equal_to_the_segment_is_held_until_the_next_line() -> None:
    codec = new_codec()
    assert texts(receive(codec, fragment("ha"), fragment("ha"))) == ["ha"]
    assert texts(receive(codec, fragment("!"))) == ["ha!"]
    assert texts(receive(codec, whole("haha!"))) == []


@pytest.mark.parametrize(
    "after",
    [
        {"type": "retry", "subtype": "starting", "attempt": 1},
        {"type": "connection", "subtype": "reconnecting", "attempt": 1},
        {"type": "interaction_query", "subtype": "request", "query_type": "shellRequestQuery", "query": {"id": 1}},
        started("c"),
    ],
    ids=lambda line: line["type"],
)
def test_held_fragment_before_a_retry_query_or_call_is_a_repetition(after: dict[str, Any]) -> None:
    emitted = receive(new_codec(), fragment("Once"), fragment(" upon"), fragment("Once upon"), after)
    assert texts(emitted) == ["Once upon"]


def test_a_held_fragment_is_not_lost_when_the_process_ends() -> None:
    codec = new_codec()
    emitted = [*receive(codec, fragment("ha"), fragment("ha")), *codec.finish(Exit(code=0))]
    assert texts(emitted) == ["haha"]


def test_answer_is_read_from_the_closing_message_alone() -> None:
    result = {"type": "result", "subtype": "success", "is_error": False, "result": "Hi", "session_id": "s"}
    emitted = receive(new_codec(), result)
    assert texts(emitted) == ["Hi"]
    assert facts.SessionKnown("s") in emitted
    assert texts(receive(new_codec(), whole("Hi"), result)) == ["Hi"]


# -- model calls


def test_thinking_text_and_calls_of_one_model_call_are_one_step() -> None:
    emitted = receive(
        new_codec(), thought("Hm"), fragment("A"), whole("A", model_call_id="m-0", timestamp_ms=2), started("c"),
        started("d"), completed("d", {"success": {}}), completed("c", {"success": {}}),
    )  # fmt: skip
    assert steps_begun(emitted) == 1


def test_what_comes_after_a_tool_is_another_step() -> None:
    codec = new_codec()
    receive(codec, started("c"), completed("c", {"success": {}}))
    assert steps_begun(receive(codec, thought("Hm"), whole("B"))) == 1


def test_a_call_with_another_model_call_id_is_another_step() -> None:
    assert steps_begun(receive(new_codec(), started("c"), started("d", model_call="m-1"))) == 2


def test_a_late_call_of_the_same_model_call_is_no_new_step() -> None:
    emitted = receive(new_codec(), started("c"), completed("c", {"success": {}}), started("d"))
    assert steps_begun(emitted) == 1


def test_a_retry_is_another_step() -> None:
    codec = new_codec()
    receive(codec, fragment("A"))
    retry = {"type": "retry", "subtype": "starting", "attempt": 2, "is_resume": True}
    assert next(step for step in receive(codec, retry) if isinstance(step, facts.Retrying)).attempt == 2
    assert steps_begun(receive(codec, fragment("B"))) == 1


# -- tool calls


def test_a_call_id_may_contain_a_newline_and_the_tools_key_has_siblings() -> None:
    call_id = "call_1\nfc_2"
    times = {"hookAdditionalContexts": [], "toolCallId": call_id, "startedAtMs": "1000", "completedAtMs": "1250"}
    emitted = receive(
        new_codec(), started(call_id, "readToolCall", path=PATH),
        completed(call_id, {"success": {"content": "x", "path": PATH}}, "readToolCall", **times),
    )  # fmt: skip
    [done] = [step for step in emitted if isinstance(step, facts.ToolDone)]
    assert (done.call_id, done.output, done.duration_ms, done.files) == (call_id, "x", 250, (facts.FileRead(PATH),))


def test_a_command_that_exits_with_3_is_an_error_whatever_the_cli_calls_it() -> None:
    for how in ("success", "failure"):
        codec = new_codec()
        receive(codec, started("c"))
        [done] = receive(codec, completed("c", {how: {"exitCode": 3, "stdout": "out", "stderr": "err"}}))
        assert (done.error, done.exit_code, done.stdout, done.stderr) == ("out\nerr", 3, "out", "err")


def test_failure_without_output_reports_its_exit_code() -> None:
    codec = new_codec()
    receive(codec, started("c"))
    [done] = receive(codec, completed("c", {"failure": {"exitCode": 3, "stdout": "", "stderr": ""}}))
    assert (done.error, done.exit_code) == ("exit code 3", 3)


def test_a_command_in_the_background_has_no_shell() -> None:
    [_, ready] = receive(new_codec(), started("c", command="npm start", isBackground=True))
    assert ready.shell is None


def test_a_command_that_may_not_be_denied_has_started() -> None:
    [_, ready] = receive(new_codec(approval_mode="yolo"), started("c"))
    assert ready.permitted
    [_, ready] = receive(new_codec(approval_mode="deny"), started("c"))
    assert not ready.permitted


def test_a_refusal_is_an_approval_that_was_denied_at_once() -> None:
    codec = new_codec()
    receive(codec, started("c"))
    asked, settled, done = receive(codec, completed("c", {"rejected": {"command": "ls", "reason": ""}}))
    assert (asked.call_id, asked.detail, settled.granted, settled.request_id) == ("c", "ls", False, asked.request_id)
    assert done.error == "rejected"


def test_a_file_that_may_not_be_read_is_no_refusal() -> None:
    codec = new_codec()
    receive(codec, started("c", "readToolCall", path=PATH))
    [done] = receive(codec, completed("c", {"permissionDenied": {"path": PATH}}, "readToolCall"))
    assert done.error == "permission denied"


def test_denial_of_a_query_is_emitted_once() -> None:
    codec = new_codec()
    query = {"type": "interaction_query", "query_type": "webFetchRequestQuery"}
    asks = {"id": 1, "webFetchRequestQuery": {"args": {"url": "https://x", "toolCallId": "c"}}}
    answer = {"id": 1, "webFetchRequestResponse": {"rejected": {"reason": "no"}}}
    emitted = receive(
        codec, {**query, "subtype": "request", "query": asks}, {**query, "subtype": "response", "response": answer},
        started("c", "webFetchToolCall", url="https://x"),
        completed("c", {"rejected": {"reason": "no"}}, "webFetchToolCall"),
    )  # fmt: skip
    settled = [step for step in emitted if isinstance(step, facts.RequestResolved)]
    assert [(step.granted, step.reason) for step in settled] == [(False, "no")]


def test_a_result_without_its_start_begins_the_call() -> None:
    emitted = receive(new_codec(), completed("c", {"success": {"content": "x"}}, "readToolCall"))
    assert [type(step) for step in emitted] == [facts.ToolReady, facts.ToolDone]


def test_unknown_tool_is_an_ordinary_call() -> None:
    codec = new_codec()
    [_, ready] = receive(codec, started("c", "holodeckToolCall", deck=3))
    assert (ready.name, ready.input) == ("holodeck", {"deck": 3})
    [done] = receive(codec, completed("c", {"success": {"sunny": True}}, "holodeckToolCall"))
    assert done.output == {"sunny": True}


def test_unknown_kind_of_failure_becomes_words() -> None:
    codec = new_codec()
    receive(codec, started("c", "readToolCall", path=PATH))
    [done] = receive(codec, completed("c", {"fileNotFound": {"path": PATH}}, "readToolCall"))
    assert done.error == "file not found"


def test_the_names_of_an_mcp_tool_are_found_in_its_full_name_too() -> None:
    [_, begun] = receive(new_codec(), started("c", "mcpToolCall", name="echo-say", toolName="say", args={"a": 1}))
    assert (begun.server, begun.tool, begun.input) == ("echo", "say", {"a": 1})


# -- edits


def test_an_edit_is_shown_as_a_diff_of_both_whole_texts() -> None:
    body = {"beforeFullFileContent": "a\nb\n", "afterFullFileContent": "a\nc\n", "diffString": "-b\n+c"}
    [patched] = edit_effects(PATH, body)
    assert patched.diff == f"--- a{PATH}\n+++ b{PATH}\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n"


@pytest.mark.parametrize(
    "body",
    [
        {"afterFullFileContent": "naïve\n"},
        {"beforeFullFileContent": "", "afterFullFileContent": "naïve\n", "diffString": "--- /dev/null\n+++ b/x\n"},
    ],
)
def test_an_edit_of_no_file_creates_it(body: dict[str, Any]) -> None:
    assert edit_effects(PATH, body) == (facts.FileWritten(PATH, 7, created=True),)


def test_edit_without_reported_change_has_no_effect() -> None:
    assert edit_effects(PATH, {"beforeFullFileContent": "a", "afterFullFileContent": "a"}) == ()
    assert edit_effects(PATH, {}) == ()


# -- the end


def test_a_closing_message_that_reports_an_error_fails_the_turn() -> None:
    for error in ({"is_error": True, "subtype": "success"}, {"is_error": False, "subtype": "error"}):
        [failed] = receive(new_codec(), {"type": "result", "result": "Rate limit exceeded", **error})
        assert failed.failure.code == "RATE_LIMITED"


@pytest.mark.parametrize(
    ("source", "words", "code"),
    [
        (Source.STDERR, "Error: Authentication required. Please run 'agent login' first.", "AUTH_ERROR"),
        (Source.STDOUT, "ActionRequiredError: You've hit your usage limit.", "RATE_LIMITED"),
        (Source.STDERR, "Cannot use this model: x. Available models: auto", "VALIDATION_ERROR"),
        (Source.STDERR, "Workspace Trust Required", "CONFIG_ERROR"),
    ],
)
def test_plain_text_explains_a_missing_closing_message(source: Source, words: str, code: str) -> None:
    codec = new_codec()
    codec.receive(words.encode(), source)
    codec.receive(b"Goodbye.", source)
    [failed] = codec.finish(Exit(code=1))
    assert failed.failure.code == code
    assert bool(failed.failure.guidance) == (code == "AUTH_ERROR")


def test_plain_text_is_ignored_after_a_closing_message_or_exit_0() -> None:
    words = b"Error: Authentication required."
    codec = new_codec()
    codec.receive(words, Source.STDERR)
    assert codec.finish(Exit(code=0)) == ()
    receive(codec, {"type": "result", "subtype": "success", "result": ""})
    assert codec.finish(Exit(code=1)) == ()


def test_unknown_plain_text_emits_no_failure() -> None:
    codec = new_codec()
    codec.receive(b"RetriableError: [weird]", Source.STDERR)
    assert codec.finish(Exit(code=1)) == ()


# -- our side


def test_it_takes_no_actions_but_an_interruption() -> None:
    codec = new_codec()
    assert codec.start() == ()
    assert codec.request(Interrupt()) == (SignalGroup(2),)
    assert codec.request(Cancel()) == codec.request(Close()) == ()
    for action in (Send("x"), Steer("x"), ApproveAction("x"), DenyAction("x"), AnswerAction("x", "y")):
        [refusal] = codec.request(action)
        assert isinstance(refusal, Refuse)


def test_resumed_session_is_marked() -> None:
    init = {"type": "system", "subtype": "init", "session_id": "s", "model": "Auto", "cwd": "/"}
    assert receive(new_codec(session_id="s"), init) == [facts.SessionKnown("s", resumed=True, model="Auto")]


# -- sniffing


def test_lines_are_distinguished_from_claude_code() -> None:
    root = Path(__file__).parents[4] / "fixtures"
    sniff = ADAPTER.protocols["stream-json"].sniff
    for folder in find_fixtures(root, "cursor"):
        lines = [native for native in map(load_object, load_fixture(folder).stdout_lines) if native is not None]
        assert not lines or any(map(sniff, lines)), folder
    for folder in find_fixtures(root, "claude"):
        assert not any(sniff(load_object(line) or {}) for line in load_fixture(folder).stdout_lines), folder


# -- robustness

ODD = [None, 1, 10**400, 1.5, "", "x", [], {}, [1], {"a": {}}, True]


@pytest.mark.parametrize("odd", ODD, ids=str)
def test_no_value_of_any_field_makes_it_raise(odd: Any) -> None:
    lines = [fragment("a"), thought("b"), started("c"), completed("c", {"success": {"exitCode": 0}}),
             whole("m", model_call_id="m"), {"type": "result", "usage": {}, "result": "x", "subtype": "success"},
             {"type": "interaction_query", "subtype": "response", "query_type": "xRequestQuery", "response": {}},
             {"type": "retry", "subtype": "starting", "attempt": 1}]  # fmt: skip
    for line in lines:
        for key in line:
            assert receive(new_codec(), {**line, key: odd})
    for key in ("shellToolCall", "editToolCall", "mcpToolCall", "taskToolCall", "function"):
        for result in (odd, {"success": odd}, {"failure": odd}, {"error": {"error": odd}}):
            assert receive(new_codec(), completed("c", result, key), completed("c", result, key))


@pytest.mark.parametrize("line", [b"{", b"[1]", b"plain words", b"\xff\xfe", b'{"type":5}', b'{"type":["x"]}'])
def test_every_line_emits_facts(line: bytes) -> None:
    [fact] = new_codec().receive(line, Source.STDOUT)
    assert isinstance(fact, facts.LogLine | facts.Unknown)
