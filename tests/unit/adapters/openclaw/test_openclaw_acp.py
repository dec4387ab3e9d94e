"""Messages of OpenClaw's ACP bridge, together with the record of its gateway."""

from typing import Any

import pytest
from openclaw_transcript import RUN, SESSION, OpenclawConversation, facts

from agent_mux.sdk.codec import (
    ApproveAction,
    Cancel,
    Close,
    CloseStdin,
    DenyAction,
    Interrupt,
    Refuse,
    Send,
    Source,
    Steer,
)
from agent_mux.sdk.facts import (
    ApprovalRequested,
    FilePatched,
    FileRead,
    FileWritten,
    Ignored,
    LogLine,
    McpBegin,
    McpDone,
    RateLimited,
    RequestResolved,
    Retrying,
    SessionKnown,
    ShellInvocation,
    StepBegin,
    TextDelta,
    TextEnd,
    ToolDone,
    ToolOutput,
    ToolReady,
    TurnDone,
    TurnFailed,
    TurnStopped,
    Usage,
    WholeText,
    WholeThinking,
)


def only(steps: list[Any], kind: type) -> Any:
    found = [step for step in steps if isinstance(step, kind)]
    assert len(found) == 1, steps
    return found[0]


# -- messages of the model


def test_text_that_the_bridge_drops_before_a_call_is_emitted() -> None:
    talk = OpenclawConversation().opened()
    assert talk.writes("I run it. ", "Let me think.") == [
        StepBegin(),
        WholeThinking("Let me think."),
        WholeText("I run it. "),
    ]
    assert talk.runs("c1", "echo hi") == [ToolReady("c1", "exec", {"command": "echo hi"}, ShellInvocation("echo hi"))]


def test_text_that_the_bridge_streamed_is_not_repeated() -> None:
    talk = OpenclawConversation().opened()
    assert talk.chunk("I ru") == [StepBegin(), TextDelta("I ru")]
    assert talk.chunk("n it.") == [TextDelta("n it.")]
    assert talk.writes("I run it. ") == [TextDelta(" "), TextEnd()]


def test_late_fragments_of_the_bridge_are_not_repeated() -> None:
    talk = OpenclawConversation().opened()
    talk.writes("Done.")
    assert isinstance(only(talk.chunk("Done."), Ignored), Ignored)
    talk.runs("c1", "true")
    assert all(isinstance(step, Ignored) for step in [*talk.chunk("Do"), *talk.chunk("ne.")])
    assert talk.chunk("\n\nNext") == [StepBegin(), TextDelta("Next")]


def test_a_fragment_with_a_late_rest_and_a_new_message_is_split() -> None:
    talk = OpenclawConversation().opened()
    talk.chunk("On")
    talk.writes("One.")
    talk.runs("c1", "true")
    assert talk.chunk("e.\n\nTwo.") == [StepBegin(), TextDelta("Two.")]


def test_a_message_that_the_bridge_cut_wrongly_is_emitted_whole() -> None:
    talk = OpenclawConversation().opened()
    talk.chunk("swer")
    assert talk.writes("The answer.") == [TextEnd(), WholeText("The answer.")]


def test_the_blank_line_between_two_messages_belongs_to_neither() -> None:
    for has_gateway in (True, False):
        talk = OpenclawConversation(has_gateway=has_gateway).opened()
        assert TextDelta("Both done.") in talk.chunk("\n\nBoth done.")
        talk = OpenclawConversation(has_gateway=has_gateway).opened()
        assert not any(isinstance(step, TextDelta) for step in talk.chunk("\n\n"))


def test_thinking_is_emitted_once_before_the_text() -> None:
    talk = OpenclawConversation().opened()
    assert talk.thinks("Hm.") == [StepBegin(), WholeThinking("Hm.")]
    talk.chunk("Fo")
    assert talk.writes("Four.", "Hm.") == [TextDelta("ur."), TextEnd()]


def test_thinking_recorded_after_its_answer_is_not_repeated() -> None:
    talk = OpenclawConversation().opened()
    talk.writes("Four.", "Hm.", at=5_000_000)
    assert isinstance(only(talk.thinks("Hm."), Ignored), Ignored)


def test_each_answer_is_a_step_even_without_text() -> None:
    talk = OpenclawConversation().opened()
    talk.writes("One.")
    talk.runs("c1", "true")
    assert talk.writes("") == [StepBegin()]
    assert not any(isinstance(step, StepBegin) for step in talk.runs("c2", "true"))


@pytest.mark.parametrize("silence", ["NO_REPLY", "HEARTBEAT_OK", "  "])
def test_silence_is_no_message(silence: str) -> None:
    talk = OpenclawConversation().opened()
    assert talk.writes(silence) == [StepBegin()]
    assert only(talk.ends(), TurnDone)


def test_answers_of_a_sub_agent_are_ignored() -> None:
    talk = OpenclawConversation().opened()
    talk.writes("I delegate.")
    talk.calls("c1", "sessions_spawn", task="look around")
    assert isinstance(only(talk.writes("I looked.", run="another"), Ignored), Ignored)
    assert WholeText("Done.") in talk.writes("Done.")


def test_records_after_the_end_of_a_turn_are_ignored() -> None:
    talk = OpenclawConversation(interactive=True).opened()
    talk.writes("Done.")
    talk.ends()
    assert all(isinstance(step, Ignored) for step in [*talk.writes("late"), *talk.retries(), *talk.fails("late")])


def test_without_a_gateway_the_bridge_is_the_only_source() -> None:
    talk = OpenclawConversation(has_gateway=False).opened()
    assert talk.chunk("Fail") == [StepBegin(), TextDelta("Fail")]
    assert talk.chunk("ing.") == [TextDelta("ing.")]
    assert StepBegin() not in talk.runs("c1", "false")


# -- failures


def test_the_end_of_a_turn_has_its_usage() -> None:
    talk = OpenclawConversation().opened()
    talk.writes("Hello.")
    used = talk.receive_notification(
        "used", usage={"input": 100, "output": 12, "cacheRead": 30, "cost": {"total": 0.25}}
    )
    assert used == [Usage(100, 12, None, 30, None, of_one_call=False)]
    cost = only(talk.ends(), TurnDone).cost
    assert (cost.total_usd, cost.input_tokens, cost.cached_tokens, cost.source) == (0.25, 100, 30, "native")


@pytest.mark.parametrize(
    ("used", "reason"),
    [
        ([{"stopReason": "length"}], "length"),
        ([{"stopReason": "stop"}], None),
        ([{"stopReason": "length"}, {"stopReason": "stop"}], None),
        ([{"stopReason": "stop"}, {"runId": "sub-agent", "stopReason": "length"}], None),
    ],
)
def test_answer_cut_at_the_token_limit_is_known_from_the_database(
    used: list[dict[str, str]], reason: str | None
) -> None:
    talk = OpenclawConversation().opened()
    talk.writes("The first half of")
    for one in used:
        talk.receive_notification("used", **{"runId": RUN, "usage": {"input": 100, "output": 12}, **one})
    assert only(talk.ends(), TurnDone).stop_reason == reason


def test_a_model_without_prices_has_no_cost() -> None:
    talk = OpenclawConversation().opened()
    talk.writes("Hello.")
    assert talk.receive_notification("used", usage={"input": 100, "output": 12, "cost": {"total": 0}}) == [
        Usage(100, 12, of_one_call=False)
    ]
    assert only(talk.ends(), TurnDone).cost is None


def test_a_refused_key_is_an_auth_error_despite_end_turn() -> None:
    talk = OpenclawConversation().opened()
    talk.fails("⚠️ request failed (authentication failed, HTTP 401).", failoverReason="auth", httpCode="401",
               providerErrorMessagePreview="invalid x-api-key")  # fmt: skip
    talk.logs("Embedded agent failed before reply: ⚠️ request failed (authentication failed, HTTP 401).")
    failure = only(talk.ends(), TurnFailed).failure
    assert (failure.code, failure.message) == (
        "AUTH_ERROR",
        "request failed (authentication failed, HTTP 401). (invalid x-api-key)",
    )


@pytest.mark.parametrize(
    ("reason", "code"),
    [
        ("rate_limit", "RATE_LIMITED"),
        ("overloaded", "RATE_LIMITED"),
        ("billing", "RATE_LIMITED"),
        ("context_overflow", "CONTEXT_EXCEEDED"),
        ("timeout", "TIMEOUT"),
        ("unknown", "AGENT_CRASH"),
    ],
)
def test_failures_are_named_by_openclaws_reason(reason: str, code: str) -> None:
    talk = OpenclawConversation().opened()
    talk.fails("it went wrong", failoverReason=reason)
    assert only(talk.ends(), TurnFailed).failure.code == code


def test_a_failure_without_a_model_call_is_classified_by_its_message() -> None:
    talk = OpenclawConversation().opened()
    talk.logs("Embedded agent failed before reply: Inline API key is disabled after a provider auth/billing failure.")
    assert only(talk.ends(), TurnFailed).failure.code == "AUTH_ERROR"


def test_a_failure_after_some_work_fails_the_turn_too() -> None:
    talk = OpenclawConversation().opened()
    talk.writes("I run it.")
    talk.runs("c1", "true")
    talk.exits("c1", "")
    talk.fails("provider internal error, HTTP 500", failoverReason="server_error")
    assert only(talk.ends(), TurnFailed)


def test_a_failure_after_which_the_agent_continued_is_dropped() -> None:
    talk = OpenclawConversation().opened()
    talk.fails("slow", failoverReason="timeout")
    talk.writes("The other model says hello.")
    assert only(talk.ends(), TurnDone)


def test_the_answer_that_failed_may_be_written_down_after_its_failure() -> None:
    talk = OpenclawConversation().opened()
    talk.fails("Context overflow", failoverReason="context_overflow")
    talk.writes("", at=1)
    assert only(talk.ends(), TurnFailed).failure.code == "CONTEXT_EXCEEDED"


def test_a_turn_without_output_has_failed() -> None:
    talk = OpenclawConversation(has_gateway=False).opened()
    failure = only(talk.ends(), TurnFailed).failure
    assert failure.code == "AGENT_CRASH"
    assert "without output" in failure.message


def test_a_failure_of_the_turn_before_is_not_of_this_one() -> None:
    talk = OpenclawConversation(interactive=True).opened()
    talk.fails("no", failoverReason="auth")
    talk.ends()
    talk.request(Send("again"))
    talk.writes("Hello.")
    assert only(talk.ends(4), TurnDone)


def test_a_retry_is_reported_and_closes_the_failed_answer() -> None:
    talk = OpenclawConversation().opened()
    talk.chunk("This will be cu")
    assert talk.retries("rate_limit") == [RateLimited(1200), Retrying(1, 8, "rate_limit", 1200)]
    assert all(isinstance(step, Ignored) for step in talk.writes("This will be cut", at=1))
    assert all(isinstance(step, Ignored) for step in talk.chunk("t"))
    assert talk.writes("Second try.") == [StepBegin(), WholeText("Second try.")]
    assert only(talk.ends(), TurnDone)


@pytest.mark.parametrize(
    "text",
    [
        "[OpenClaw interruption] rate limit reached",
        "⚠️ OpenClaw couldn't produce or deliver a reply. Please try again. rate limit",
    ],
)
def test_an_error_that_is_printed_as_a_message_is_an_error(text: str) -> None:
    talk = OpenclawConversation(has_gateway=False).opened()
    assert not any(isinstance(step, TextDelta) for step in talk.chunk(text))
    assert only(talk.ends(), TurnFailed).failure.code == "RATE_LIMITED"


# -- tools


def test_a_command_that_fails_is_an_error_with_its_code_and_its_output() -> None:
    talk = OpenclawConversation().opened()
    talk.runs("c1", "exit 3")
    assert talk.prints("c1", "oops\n", status="running") == [ToolOutput("c1", "oops\n")]
    done = only(talk.exits("c1", "oops\n\n(Command exited with code 3)", 3), ToolDone)
    assert (done.exit_code, done.stdout, done.error) == (3, "oops", "oops\n\n(Command exited with code 3)")


def test_a_command_that_prints_nothing_has_no_output() -> None:
    talk = OpenclawConversation().opened()
    talk.runs("c1", "true")
    done = only(talk.prints("c1", "(no output)", "completed", exitCode=0, aggregated=""), ToolDone)
    assert (done.stdout, done.error, done.exit_code) == (None, None, 0)


def test_a_command_that_continues_in_the_background_has_not_exited() -> None:
    talk = OpenclawConversation().opened()
    talk.runs("c1", "sleep 99")
    details = {"status": "running", "sessionId": "x", "tail": ""}
    steps = talk.receive_update(
        "tool_call_update", toolCallId="c1", status="completed", rawOutput={"details": details}, content=[]
    )
    done = only(steps, ToolDone)
    assert (done.exit_code, done.error) == (-1, None)
    assert only(talk.runs("c2", "sleep 99", background=True), ToolReady).shell is None


def test_a_command_has_its_own_directory() -> None:
    assert only(OpenclawConversation().opened().runs("c1", "ls", workdir="/x"), ToolReady).shell == ShellInvocation(
        "ls", "/x"
    )


def test_file_tools_report_their_effects() -> None:
    talk = OpenclawConversation().opened()
    talk.calls("w", "write", "edit", path="/work/a.txt", content="ä\n")
    written = only(talk.prints("w", "ok", "completed", created=True), ToolDone)
    assert written.files == (FileWritten("/work/a.txt", 3, True),)
    talk.calls("e", "edit", "edit", path="/work/a.txt", edits=[])
    patch = "--- /work/a.txt\n+++ /work/a.txt\n@@ -1 +1 @@\n-ä\n+b\n"
    edited = only(talk.prints("e", "ok", "completed", patch=patch), ToolDone)
    diff = "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-ä\n+b\n"
    assert edited.files == (FilePatched("/work/a.txt", diff),)
    talk.calls("r", "read", "read", path="a.txt")
    assert only(talk.prints("r", "b\n", "completed"), ToolDone).files == (FileRead("a.txt"),)
    talk.calls("n", "read", "read", path="nope")
    assert only(talk.prints("n", "no such file", "failed"), ToolDone).files == ()


def test_a_tool_of_an_mcp_server_is_an_mcp_call() -> None:
    talk = OpenclawConversation().opened()
    assert McpBegin("c1", "echo", "say", {"text": "hi"}) in talk.calls("c1", "echo__say", text="hi")
    assert talk.prints("c1", "hi", "completed") == [McpDone("c1", "hi")]


def test_a_call_through_the_catalog_is_reported_once_as_the_call_it_makes() -> None:
    talk = OpenclawConversation().opened()
    talk.writes("MCP.")
    outer = talk.calls("c1", "tool_call", id="echo__say", args={"text": "hi"})
    assert all(isinstance(step, Ignored) for step in outer)
    inner = "tool_search_code:c1:echo__say:1"
    assert talk.calls(inner, "echo__say", text="hi") == [McpBegin(inner, "echo", "say", {"text": "hi"})]
    assert talk.prints(inner, "hi", "completed") == [McpDone(inner, "hi")]
    last = talk.prints("c1", "SECURITY NOTICE: hi", "completed")
    assert len(last) == 1
    assert isinstance(last[0], Ignored)


def test_a_call_through_the_catalog_without_another_call_is_reported() -> None:
    talk = OpenclawConversation().opened()
    talk.calls("c1", "tool_call", id="nope")
    steps = talk.prints("c1", "unknown tool", "failed")
    assert only(steps, ToolReady).name == "tool_call"
    assert only(steps, ToolDone).error == "unknown tool"


# -- the conversation


def test_the_conversation_begins_and_ends_by_itself() -> None:
    talk = OpenclawConversation()
    assert [line["method"] for line in talk.sent()] == ["initialize"]
    talk.opened()
    talk.writes("Done.")
    assert only(talk.ends(), TurnDone)
    assert talk.sent()[-1] == "EOF"


def test_prompts_wait_for_each_other_since_a_second_one_would_cancel_the_first() -> None:
    talk = OpenclawConversation(interactive=True).opened()
    assert talk.request(Send("second")) == []
    talk.writes("One.")
    talk.ends()
    (prompt,) = talk.sent()
    assert prompt["params"]["prompt"] == [{"type": "text", "text": "second"}]
    talk.request(Close())
    talk.writes("Two.")
    talk.ends(4)
    assert talk.sent() == ["EOF"]


@pytest.mark.parametrize(
    ("action", "option", "granted"),
    [
        (ApproveAction("0"), "allow-once", True),
        (ApproveAction("0", always=True), "allow-once", True),
        (DenyAction("0"), "deny", False),
    ],
)
def test_a_command_waits_for_permission(action: Any, option: str, granted: bool) -> None:
    talk = OpenclawConversation().opened()
    talk.runs("c1", "touch x")
    asked = talk.receive({"id": 0, "method": "session/request_permission", "params": _permission("c1", "touch x")})
    shown = only(asked, ApprovalRequested)
    assert (shown.request_id, shown.detail, shown.call_id, shown.tool_name) == ("0", "touch x", "c1", "exec")
    steps = talk.request(action)
    assert only(steps, RequestResolved).granted is granted
    assert talk.sent()[-1] == {
        "jsonrpc": "2.0", "id": 0, "result": {"outcome": {"outcome": "selected", "optionId": option}},
    }  # fmt: skip


def test_a_command_that_is_denied_never_ran() -> None:
    talk = OpenclawConversation().opened()
    talk.runs("c1", "touch x")
    talk.receive({"id": 0, "method": "session/request_permission", "params": _permission("c1", "touch x")})
    talk.request(DenyAction("0"))
    denied = "Exec denied (gateway id=x, user-denied): touch x"
    done = only(talk.prints("c1", denied, "failed", status="failed", exitCode=None, aggregated=denied), ToolDone)
    assert (done.error, done.stdout, done.exit_code) == (denied, None, None)


def test_an_interruption_stops_the_turn_and_the_next_prompt_follows() -> None:
    talk = OpenclawConversation(interactive=True).opened()
    talk.runs("c1", "sleep 60")
    talk.request(Interrupt())
    assert talk.sent()[-1]["method"] == "session/cancel"
    talk.fails("This operation was aborted")
    assert only(talk.ends(reason="cancelled"), TurnStopped)
    talk.request(Send("go on"))
    talk.writes("I go on.")
    assert only(talk.ends(4), TurnDone)


def test_an_abort_cancels_and_hangs_up() -> None:
    talk = OpenclawConversation().opened()
    talk.request(Cancel())
    assert talk.sent()[-1]["method"] == "session/cancel"
    talk.ends(reason="cancelled")
    assert talk.sent() == ["EOF"]


def test_there_is_no_steering() -> None:
    assert (
        only(OpenclawConversation(interactive=True).opened().request(Steer("left")), Refuse).code == "CAPABILITY_ERROR"
    )


def test_a_session_is_continued_and_its_past_counted_not_shown() -> None:
    talk = OpenclawConversation(session_id=SESSION)
    talk.receive_response(1, {"protocolVersion": 1, "agentCapabilities": {"loadSession": True}})
    assert talk.sent()[-1]["method"] == "session/load"
    talk.receive_update("user_message_chunk", content={"type": "text", "text": "before"})
    talk.receive_update("agent_message_chunk", content={"type": "text", "text": "Hm."})
    assert SessionKnown(SESSION, resumed=True, prior_turns=1) in talk.receive_response(2, {})
    assert talk.sent()[-1]["method"] == "session/prompt"


def test_a_session_that_openclaw_created_for_an_unknown_id_is_not_found() -> None:
    talk = OpenclawConversation(session_id=SESSION)
    talk.receive_response(1, {"protocolVersion": 1, "agentCapabilities": {"loadSession": True}})
    failed, hangs_up = talk.receive_response(2, {})
    assert isinstance(failed, TurnFailed)
    assert failed.failure.code == "SESSION_NOT_FOUND"
    assert hangs_up == CloseStdin()


def test_the_effort_is_the_highest_that_the_model_has() -> None:
    talk = OpenclawConversation(thinking_effort="max")
    talk.receive_response(1, {"protocolVersion": 1, "agentCapabilities": {}})
    levels = [{"value": level, "name": level} for level in ("off", "high", "adaptive")]
    option = {"id": "thought_level", "category": "thought_level", "currentValue": "adaptive", "options": levels}
    talk.receive_response(2, {"sessionId": SESSION, "configOptions": [option]})
    assert talk.sent()[-1]["params"] == {"sessionId": SESSION, "configId": "thought_level", "value": "high"}


def test_standard_error_is_a_log() -> None:
    talk = OpenclawConversation().opened()
    line = b'{"event":"embedded_run_agent_end","isError":true}'
    assert list(talk.codec.receive(line, Source.STDERR)) == [LogLine(line.decode(), "stderr")]


# -- whatever it prints


ODD: list[Any] = [None, True, -1, 2**70, "", "x" * 300, [], [[]], {}, {"type": {}}]


@pytest.mark.parametrize("odd", ODD)
def test_odd_notifications_of_the_gateway_never_raise(odd: Any) -> None:
    talk = OpenclawConversation().opened()
    whole = {"ts": 1, "runId": RUN, "rawText": "a", "rawThinking": "b", "evtType": "thinking_end", "content": "c"}
    for key in whole:
        assert facts(talk.receive_notification("answer", **{**whole, key: odd}))
    entry = {"event": "embedded_run_agent_end", "isError": True, "error": "no", "time": "x", "httpCode": "401"}
    for key in entry:
        assert facts(talk.receive_notification("log", **{**entry, key: odd}))
    assert facts(
        talk.receive({"method": "_agent_mux/answer", "params": odd}, {"method": "_agent_mux/log", "params": odd})
    )
    assert facts(talk.receive({"method": "_agent_mux/unheard", "params": odd}))
    assert facts(talk.ends())


def _permission(call_id: str, command: str) -> dict[str, Any]:
    return {
        "sessionId": SESSION,
        "toolCall": {
            "toolCallId": call_id,
            "title": f"exec: command: {command}",
            "kind": "execute",
            "status": "pending",
            "rawInput": {"name": "exec", "approvalId": "a", "command": command, "host": "gateway"},
            "_meta": {"toolName": "exec", "approvalId": "a"},
        },
        "options": [
            {"optionId": "allow-once", "name": "Allow once", "kind": "allow_once"},
            {"optionId": "deny", "name": "Deny", "kind": "reject_once"},
        ],
    }
