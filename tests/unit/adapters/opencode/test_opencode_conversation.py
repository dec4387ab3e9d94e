"""Our side of the conversation with `opencode serve`, as transcripts of both sides."""

import json
from typing import Any

import pytest
from opencode_transcript import (
    ABORT,
    ANSWERED,
    SESSION,
    OpencodeConversation,
    event,
    failure,
    message,
    new_codec,
    part,
    prompt,
    status,
    step_finish,
    text_part,
)
from tests.unit.adapters.codec_conversation import facts_of

from agent_mux.sdk import facts
from agent_mux.sdk.codec import Cancel, Close, Interrupt, Refuse, Send, Source, Steer

CREATE = ("POST /session", {})
OVERFLOW = failure("ContextOverflowError", message="maximum context length is 10 tokens, resulted in 99 tokens")


def test_one_turn_run_from_first_event_to_end_of_input() -> None:
    talk = OpencodeConversation()
    assert talk.sent() == []
    talk.connects()
    assert talk.sent() == ["GET /mcp", CREATE]
    talk.receive_response(1, {})
    talk.receive_response(2, {"id": SESSION})
    assert talk.sent() == [prompt("hello")]
    talk.receive_response(3, None, 204)
    talk.shows("hello")
    talk.receive(status("busy"), *ANSWERED)
    assert talk.sent() == []
    talk.rests()
    assert talk.sent() == ["EOF"]
    assert talk.rests() == [
        facts.Ignored("session.status", "already idle"),
        facts.Ignored("session.idle", "emitted from session.status"),
    ]
    assert [type(fact).__name__ for fact in facts_of(talk.steps)] == [
        "SessionKnown", "TurnBegin", "TextDelta", "TextEnd", "Usage", "RunCost", "StepDone", "TurnDone",
    ]  # fmt: skip


def test_options_are_in_the_requests() -> None:
    talk = OpencodeConversation(
        model="openrouter/acme/coder",
        system_prompt="be brief",
        thinking_effort="max",
        output_schema={"type": "object"},
        images=("data:image/png;base64,AA==", "file:///home/dev/a%20b.txt"),
    )
    talk.opened()
    assert talk.sent()[-1] == (
        f"POST /session/{SESSION}/prompt_async",
        {
            "parts": [
                {"type": "text", "text": "hello"},
                {"type": "file", "mime": "image/png", "filename": "attachment", "url": "data:image/png;base64,AA=="},
                {"type": "file", "mime": "text/plain", "filename": "a b.txt", "url": "file:///home/dev/a%20b.txt"},
            ],
            "model": {"providerID": "openrouter", "modelID": "acme/coder"},
            "variant": "max",
            "system": "be brief",
            "format": {"type": "json_schema", "schema": {"type": "object"}},
        },
    )


def test_files_are_sent_with_first_prompt_only() -> None:
    talk = OpencodeConversation(images=("file:///a.txt",), interactive=True).running()
    talk.receive(*ANSWERED)
    talk.rests()
    talk.request(Send("more"))
    assert talk.sent() == [prompt("more")]


@pytest.mark.parametrize("context", [{"approval_mode": "deny"}, {"asks_everything": True}])
def test_deny_mode_session_asks_for_everything(context: dict[str, Any]) -> None:
    talk = OpencodeConversation(**context)
    talk.connects()
    assert talk.sent()[-1] == ("POST /session", {"permission": [{"permission": "*", "pattern": "*", "action": "ask"}]})


def test_session_is_continued() -> None:
    talk = OpencodeConversation(session_id="ses_old/../x")
    talk.connects()
    assert talk.sent() == ["GET /mcp", "GET /session/ses_old%2F..%2Fx"]
    assert facts_of(talk.receive_response(2, {"id": SESSION})) == [facts.SessionKnown(SESSION, resumed=True)]


def test_forked_session_does_not_repeat_its_history() -> None:
    talk = OpencodeConversation(fork_session_id="ses_old")
    talk.connects()
    assert talk.sent() == ["GET /mcp", ("POST /session/ses_old/fork", {})]
    history = [message("m0"), text_part("m0", "what was said before"), step_finish("m0")]
    talk.receive(event("session.created", {"info": {"id": SESSION}}), *history)
    assert facts_of(talk.receive_response(2, {"id": SESSION})) == [facts.SessionKnown(SESSION, forked_from="ses_old")]
    assert facts_of(talk.receive(*history)) == []


def test_missing_session_fails_the_run() -> None:
    talk = OpencodeConversation(session_id="ses_none")
    talk.connects()
    talk.sent()
    steps = talk.receive_response(2, {"name": "NotFoundError", "data": {"message": "Session not found: ses_none"}}, 404)
    assert facts_of(steps) == [facts.TurnFailed(facts.Failure("SESSION_NOT_FOUND", "Session not found: ses_none"))]
    assert talk.sent() == ["EOF"]


def test_refused_prompt_fails_its_turn() -> None:
    talk = OpencodeConversation().opened()
    talk.sent()
    steps = talk.receive_response(3, {"_tag": "InvalidRequestError", "message": "bad schema"}, 400)
    assert facts_of(steps) == [facts.TurnFailed(facts.Failure("AGENT_CRASH", "bad schema"))]
    assert talk.sent() == ["EOF"]


def test_server_without_response_fails_the_run() -> None:
    talk = OpencodeConversation()
    talk.connects()
    [failed, *_] = talk.receive({"id": 2, "status": 0, "error": "ConnectionRefusedError: refused"})
    assert failed == facts.TurnFailed(facts.Failure("AGENT_CRASH", "ConnectionRefusedError: refused"))


def test_prompts_wait_for_the_previous_turn() -> None:
    talk = OpencodeConversation(interactive=True).running()
    talk.request(Send("two"))
    talk.request(Send("three"))
    assert talk.sent() == []
    talk.receive(*ANSWERED)
    talk.rests()
    assert talk.sent() == [prompt("two")]
    talk.rests()  # the second `idle` of the first turn
    assert talk.sent() == []
    talk.receive(status("busy"), *ANSWERED)
    talk.rests()
    assert talk.sent() == [prompt("three")]
    talk.request(Close())
    assert talk.sent() == []
    talk.receive(status("busy"), *ANSWERED)
    talk.rests()
    assert talk.sent() == ["EOF"]
    assert talk.request(Send("four")) == [
        Refuse("STDIN_NOT_AVAILABLE", "opencode has finished and is exiting: start another run")
    ]


def test_message_is_sent_into_the_running_turn() -> None:
    talk = OpencodeConversation().running()
    talk.request(Steer("faster"))
    assert talk.sent() == [prompt("faster")]
    talk.shows("faster", "msg_2")
    talk.receive(*ANSWERED)
    talk.rests()
    assert talk.sent() == ["EOF"]


def test_message_waits_until_the_turn_runs() -> None:
    talk = OpencodeConversation().opened()
    talk.sent()
    talk.request(Steer("faster"))
    assert talk.sent() == []
    talk.receive(status("busy"))
    assert talk.sent() == [prompt("faster")]


def test_late_message_gets_its_own_turn() -> None:
    talk = OpencodeConversation().running()
    talk.receive(*ANSWERED)
    talk.request(Steer("and this"))
    talk.sent()
    talk.rests()
    assert talk.sent() == []  # the message is already sent
    talk.shows("and this", "msg_2")
    talk.receive(status("busy"), *ANSWERED)
    talk.rests()
    assert talk.sent() == ["EOF"]
    assert sum(isinstance(step, facts.TurnDone) for step in talk.steps) == 2


def test_message_without_a_turn_is_a_prompt() -> None:
    talk = OpencodeConversation(prompt="", interactive=True).opened()
    talk.sent()
    talk.request(Steer("go"))
    assert talk.sent() == [prompt("go")]


def test_interrupt_ends_the_turn_and_the_next_prompt_follows() -> None:
    talk = OpencodeConversation(interactive=True).running()
    talk.receive(message("m1"), text_part("m1", "half", complete=False))
    talk.request(Interrupt())
    assert talk.sent() == [ABORT]
    aborted = {"name": "MessageAbortedError", "data": {"message": "Aborted"}}
    talk.receive(failure("MessageAbortedError", message="Aborted"))
    talk.rests()
    assert not any(isinstance(step, facts.TurnStopped) for step in talk.steps)  # the answer is not complete yet
    talk.receive(message("m1", error=aborted, completed=True))
    assert facts.TurnStopped(None) in talk.rests()
    talk.request(Send("go on"))
    assert talk.sent() == [prompt("go on")]


def test_interrupt_waits_until_the_turn_runs() -> None:
    talk = OpencodeConversation().opened()
    talk.sent()
    talk.request(Interrupt())
    assert talk.sent() == []
    talk.receive(status("busy"))
    assert talk.sent() == [ABORT]
    assert facts.TurnStopped(None) in talk.rests()  # before there was any answer


def test_late_interrupt_changes_nothing() -> None:
    talk = OpencodeConversation().running()
    talk.receive(*ANSWERED)
    talk.request(Interrupt())
    assert any(isinstance(step, facts.TurnDone) for step in talk.rests())


def test_interrupt_between_turns_is_noted() -> None:
    talk = OpencodeConversation(prompt="", interactive=True).opened()
    talk.sent()
    assert talk.request(Interrupt()) == [facts.Note("nothing to interrupt: opencode is waiting for a prompt")]


def test_cancel_aborts_and_drops_waiting_prompts() -> None:
    talk = OpencodeConversation(interactive=True, no_session=True).running()
    talk.request(Send("two"))
    talk.request(Cancel())
    assert talk.sent() == [ABORT, f"DELETE /session/{SESSION}"]


def test_no_session_deletes_the_session_before_the_end() -> None:
    talk = OpencodeConversation(no_session=True).running()
    talk.receive(*ANSWERED)
    talk.rests()
    assert talk.sent() == [f"DELETE /session/{SESSION}", "EOF"]


def test_repeated_compaction_is_stopped() -> None:
    talk = OpencodeConversation().running()
    summary = [message("s1", summary=True), text_part("s1", "short"), step_finish("s1")]
    talk.receive(message("m1"), OVERFLOW, message("m1", completed=True), status("busy"), *summary)
    talk.receive(event("session.compacted", {"sessionID": SESSION}), status("busy"), message("m2"))
    assert talk.sent() == []
    talk.receive(OVERFLOW)
    assert talk.sent() == [ABORT]
    talk.receive(message("m2", completed=True))
    failed = next(step for step in talk.rests() if isinstance(step, facts.TurnFailed))
    assert (failed.failure.code, failed.failure.used_tokens, failed.failure.max_tokens) == ("CONTEXT_EXCEEDED", 99, 10)
    assert facts.ContextCompacted("short") in talk.steps
    assert talk.sent() == ["EOF"]


def test_single_compaction_is_no_failure() -> None:
    talk = OpencodeConversation().running()
    talk.receive(message("m1"), OVERFLOW, message("m1", completed=True), status("busy"))
    talk.receive(message("m2"), step_finish("m2"), message("m2", finish="tool-calls", completed=True), status("busy"))
    talk.receive(message("m3"), OVERFLOW, message("m3", completed=True), status("busy"), *ANSWERED)
    assert talk.sent() == []
    assert isinstance(talk.rests()[0], facts.TurnDone)
    assert sum(isinstance(step, facts.RecoverableError) for step in talk.steps) == 2


def test_broken_mcp_server_is_noted() -> None:
    talk = OpencodeConversation()
    talk.connects()
    [note] = talk.receive_response(
        1, {"good": {"status": "connected"}, "bad": {"status": "failed", "error": "no such file"}}
    )
    assert note == facts.Note("MCP server bad does not work: no such file", "warn")


def test_other_clients_of_the_server_are_ignored() -> None:
    talk = OpencodeConversation().running()
    assert facts_of(talk.receive(status("busy", "ses_other"), part("x", "text", "ses_other", text="hi"))) == []


def test_observer_sends_nothing_and_reads_session_from_responses() -> None:
    codec = new_codec("serve")
    asked = {"id": 7, "method": "POST", "path": "/session/ses_old/fork", "body": {}}
    assert list(codec.receive(json.dumps(asked).encode(), Source.STDIN)) == [
        facts.Ignored("stdin:fork", "our own side")
    ]
    created = event("session.created", {"info": {"id": SESSION}})
    assert facts_of(codec.receive(json.dumps(created).encode(), Source.STDOUT)) == []
    answer = {"id": 7, "status": 200, "body": {"id": SESSION}}
    assert list(codec.receive(json.dumps(answer).encode(), Source.STDOUT)) == [
        facts.SessionKnown(SESSION, forked_from="ses_old")
    ]


@pytest.mark.parametrize("line", [b"nonsense", b'{"method":"GET"}', b"[]"])
def test_invalid_line_to_the_bridge_is_noted(line: bytes) -> None:
    assert list(new_codec("serve").receive(line, Source.STDIN)) == [
        facts.Note("a line to the bridge is not a request", "warn")
    ]


def test_prompt_without_a_turn_fails() -> None:
    talk = OpencodeConversation().opened()
    talk.sent()
    steps = talk.receive(failure("UnknownError", message='Agent not found: "nobody".'))
    assert facts_of(steps) == [facts.TurnFailed(facts.Failure("AGENT_CRASH", 'Agent not found: "nobody".'))]
    assert talk.sent() == ["EOF"]


def test_invalid_session_id_is_reported_as_not_found() -> None:
    talk = OpencodeConversation(fork_session_id="a/7")
    talk.connects()
    [failed, *_] = talk.receive_response(
        2, {"name": "UnknownError", "data": {"message": "Unexpected server error."}}, 500
    )
    why = "'a/7' is not an id of an opencode session"
    assert failed == facts.TurnFailed(facts.Failure("SESSION_NOT_FOUND", why))
