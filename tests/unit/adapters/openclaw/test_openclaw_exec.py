"""`openclaw agent exec --json`: one document over many lines."""

import json
import signal
from typing import Any

import pytest
from openclaw_transcript import EXEC, facts, new_codec
from tests.unit.adapters.codec_conversation import receive

from agent_mux.sdk.codec import (
    AnswerAction,
    ApproveAction,
    Cancel,
    Close,
    Exit,
    Interrupt,
    Refuse,
    Send,
    SignalGroup,
    Source,
)
from agent_mux.sdk.facts import (
    Fact,
    Ignored,
    ImageProduced,
    LogLine,
    Note,
    RateLimited,
    Retrying,
    SessionKnown,
    TurnDone,
    TurnFailed,
    Usage,
    WholeText,
    WholeThinking,
)
from agent_mux_adapters.openclaw.outcome import failure_in, failure_of

OK: dict[str, Any] = {
    "ok": True,
    "status": "ok",
    "final": "Done.",
    "payloads": [{"text": "Done.", "mediaUrl": None}],
    "usage": {"input": 300, "output": 36, "cacheRead": 90, "cacheWrite": 60, "total": 486},
    "costUsd": 0.5,
    "toolSummary": {"calls": 2, "tools": ["exec", "read"], "failures": 1},
    "model": "m",
    "provider": "p",
    "sessionId": "s-1",
}
RETRY = b"[agent/embedded] transient same-model retry 2/9 for p/m reason=rate_limit: delayMs=1529"


def all_facts(document: Any, indent: int | None = 2) -> list[Fact]:
    lines = json.dumps(document, indent=indent).encode().split(b"\n")
    return facts(receive(new_codec(EXEC), *lines))


def facts_of(document: Any) -> list[Fact]:
    return [fact for fact in all_facts(document) if not isinstance(fact, Ignored)]


def closing(**fields: Any) -> Fact:
    return all_facts({**OK, **fields})[-1]


def failed(**fields: Any) -> Any:
    last = closing(ok=False, status="error", final="", payloads=[], **fields)
    assert isinstance(last, TurnFailed)
    return last.failure


def test_every_line_but_the_last_is_part_of_the_document() -> None:
    lines = json.dumps(OK, indent=2).split("\n")
    before = all_facts(OK)[: len(lines) - 1]
    assert before == [Ignored("document", "part of one JSON document")] * (len(lines) - 1)


def test_a_document_on_one_line_is_understood() -> None:
    assert all_facts(OK, indent=None) == facts_of(OK)


def test_the_document_has_answer_usage_and_cost() -> None:
    facts_ = facts_of(OK)
    assert WholeText("Done.") in facts_
    assert Usage(300, 36, None, 90, 60, of_one_call=False) in facts_
    done = facts_[-1]
    assert isinstance(done, TurnDone)
    assert done.cost is not None
    assert (done.cost.total_usd, done.cost.source, done.cost.cache_creation_tokens) == (0.5, "native", 60)


def test_a_missing_cost_stays_unknown() -> None:
    document = {key: value for key, value in OK.items() if key != "costUsd"}
    assert facts_of(document)[-1] == TurnDone(None)


def test_a_session_that_is_deleted_at_the_end_has_a_transient_id() -> None:
    assert SessionKnown("transient-s-1", model="m") in facts_of(OK)


def test_that_tools_were_called_is_a_note_since_more_is_not_known() -> None:
    assert any(isinstance(fact, Note) and "exec, read" in fact.message for fact in facts_of(OK))


def test_reasoning_is_a_thought_and_media_are_images() -> None:
    payloads = [
        {"text": "Hm.", "isReasoning": True},
        {"text": "Look:", "mediaUrl": "file:///work/a.PNG"},
        {"text": "a song", "mediaUrl": "/work/a.mp3"},
    ]
    shown = [
        fact
        for fact in facts_of({**OK, "payloads": payloads})
        if isinstance(fact, WholeText | WholeThinking | ImageProduced)
    ]
    image = ImageProduced("image/png", file_path="/work/a.PNG")
    assert shown == [WholeThinking("Hm."), WholeText("Look:"), image, WholeText("a song")]


def test_the_final_text_counts_where_there_are_no_payloads() -> None:
    assert WholeText("Done.") in facts_of({**OK, "payloads": []})


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ("Authentication failed (provider returned HTTP 401).", "AUTH_ERROR"),
        ("⚠️ Rate limit reached for requests", "RATE_LIMITED"),
        ("Context overflow: prompt too large for the model.", "CONTEXT_EXCEEDED"),
        ("Inline API key for provider is temporarily disabled after a provider auth/billing failure.", "AUTH_ERROR"),
        ("The provider refused this request. Revise the request and try again.", "CONTENT_FILTERED"),
        ("request failed (provider internal error, HTTP 500).", "AGENT_CRASH"),
    ],
)
def test_error_codes_follow_from_the_message(message: str, code: str) -> None:
    failure = failed(error={"message": message, "kind": "exception"})
    assert (failure.code, failure.message) == (code, message.removeprefix("⚠️ "))


def test_the_size_of_the_context_is_read() -> None:
    failure = failed(error={"message": "prompt is too long: 210000 tokens > 200000 maximum"})
    assert (failure.used_tokens, failure.max_tokens) == (210_000, 200_000)


def test_a_time_out_is_named_after_its_reason_where_there_is_one() -> None:
    slow = closing(ok=False, status="timeout", payloads=[], error={"message": "slow"})
    limited = closing(ok=False, status="timeout", payloads=[], error={"message": "rate limit"})
    assert isinstance(slow, TurnFailed)
    assert isinstance(limited, TurnFailed)
    assert (slow.failure.code, limited.failure.code) == ("TIMEOUT", "RATE_LIMITED")


def test_answer_cut_at_the_token_limit_has_this_reason_and_not_the_remark() -> None:
    remark = "⚠️ Reply truncated at the model's output token limit. The text above is partial — ask to continue it."
    payloads = [{"text": "The first half of", "mediaUrl": None}, {"text": remark, "mediaUrl": None}]
    found = facts_of({**OK, "final": f"The first half of\n{remark}", "payloads": payloads})
    assert [fact.text for fact in found if isinstance(fact, WholeText)] == ["The first half of"]
    assert isinstance(found[-1], TurnDone)
    assert found[-1].stop_reason == "length"


def test_an_error_that_is_called_a_payload_is_no_message() -> None:
    document = {**OK, "ok": False, "status": "error", "final": "", "payloads": [{"text": "Boom.", "isError": True}]}
    assert not any(isinstance(fact, WholeText) for fact in facts_of(document))
    last = facts_of(document)[-1]
    assert isinstance(last, TurnFailed)
    assert last.failure.message == "Boom."


def test_the_error_of_the_command_itself_fails_the_turn() -> None:
    document = {"ok": False, "error": {"type": "cli_error", "message": "--cwd does not exist"}}
    last = facts_of(document)[-1]
    assert isinstance(last, TurnFailed)
    assert last.failure.message == "--cwd does not exist"


# -- agent --local


def local(**meta: Any) -> dict[str, Any]:
    agent = {"sessionId": "s-2", "model": "m", "usage": {"input": 5, "output": 6}}
    return {"payloads": [{"text": "Hi."}], "meta": {"agentMeta": agent, "aborted": False, **meta}}


def test_the_document_of_agent_local_names_a_session_that_stays() -> None:
    facts_ = facts_of(local())
    assert facts_ == [SessionKnown("s-2", model="m"), WholeText("Hi."), Usage(5, 6, of_one_call=False), TurnDone()]


@pytest.mark.parametrize("meta", [{"aborted": True}, {"stopReason": "error"}, {"error": {"message": "no"}}])
def test_agent_local_may_fail_too(meta: dict[str, Any]) -> None:
    assert isinstance(facts_of(local(**meta))[-1], TurnFailed)


# -- around the document


def test_lines_that_are_no_document_are_log_lines() -> None:
    codec = new_codec(EXEC)
    assert receive(codec, b"All done.", b"{}", b"[1]") == [LogLine("All done."), LogLine("{}"), LogLine("[1]")]


def test_what_comes_after_the_document_is_a_log_line() -> None:
    codec = new_codec(EXEC)
    receive(codec, json.dumps(OK).encode())
    assert receive(codec, b"{", RETRY) == [LogLine("{"), LogLine(RETRY.decode())]
    assert receive(codec, RETRY, source=Source.STDERR) == [LogLine(RETRY.decode(), "stderr")]


def test_a_document_that_breaks_off_is_shown_and_closes_nothing() -> None:
    codec = new_codec(EXEC)
    receive(codec, b"{", b'  "ok": true,')
    assert list(codec.finish(Exit(0))) == [LogLine("{"), LogLine('  "ok": true,')]


def test_a_retry_in_the_log_is_reported() -> None:
    steps = receive(new_codec(EXEC), RETRY, source=Source.STDERR)
    assert steps == [LogLine(RETRY.decode(), "stderr"), RateLimited(1529), Retrying(2, 9, "rate_limit", 1529)]


# -- what a consumer wants


@pytest.mark.parametrize("action", [Send("more"), ApproveAction("1"), AnswerAction("1", "x")])
def test_it_takes_no_input(action: Any) -> None:
    (refusal,) = new_codec(EXEC).request(action)
    assert isinstance(refusal, Refuse)
    assert refusal.code == "STDIN_NOT_AVAILABLE"


def test_it_is_interrupted_by_a_signal() -> None:
    assert list(new_codec(EXEC).request(Interrupt())) == [SignalGroup(signal.SIGINT)]


@pytest.mark.parametrize("action", [Cancel(), Close()])
def test_the_mux_ends_it(action: Any) -> None:
    assert list(new_codec(EXEC).request(action)) == []


def test_it_begins_by_itself() -> None:
    assert list(new_codec(EXEC).start()) == []


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ("LLM request failed: connection refused by the provider endpoint.", "NETWORK_ERROR"),
        ("LLM request timed out.", "TIMEOUT"),
    ],
)
def test_failed_connection_that_openclaw_calls_a_timeout_is_a_network_error(message: str, code: str) -> None:
    assert failure_of(message, reason="timeout").code == code


GIVEN_UP = b"[model-fallback/decision] model fallback decision: decision=candidate_failed candidate=p/m reason=timeout "
"""Without its end, the detail."""
TIMED_OUT = {**OK, "ok": False, "status": "error", "error": {"message": "LLM request timed out."}, "payloads": []}


@pytest.mark.parametrize(
    ("detail", "code"), [(b"terminated", "NETWORK_ERROR"), (b"Request timed out.", "TIMEOUT"), (b"", "TIMEOUT")]
)
def test_cause_in_the_log_distinguishes_a_broken_connection_from_a_timeout(detail: bytes, code: str) -> None:
    codec = new_codec(EXEC)
    codec.receive(GIVEN_UP + b"next=none detail=" + detail, Source.STDERR)
    [failed] = [fact for fact in receive(codec, TIMED_OUT) if isinstance(fact, TurnFailed)]
    assert failed.failure.code == code
    assert failed.failure.message == "LLM request timed out." + (" (terminated)" if code == "NETWORK_ERROR" else "")


def test_cause_of_a_failed_call_distinguishes_a_broken_connection_from_a_timeout() -> None:
    entry = {"event": "embedded_run_agent_end", "isError": True, "error": "LLM request timed out.",
             "failoverReason": "timeout", "rawErrorPreview": "terminated"}  # fmt: skip
    failure = failure_in(entry)
    assert failure is not None
    assert (failure.code, failure.message) == ("NETWORK_ERROR", "LLM request timed out. (terminated)")
