"""When a turn of pi is over, and how it ended."""

from typing import Any

import pytest
from tests.unit.adapters.codec_conversation import codec_of, facts_of, receive
from tests.unit.adapters.pi_family import AGENT_START, SETTLED, PiConversation, agent_end, answer, failed
from tests.unit.adapters.recordings import Recordings

from agent_mux.sdk import facts
from agent_mux.sdk.codec import Codec, Exit, Interrupt, Source
from agent_mux_adapters.pi import ADAPTER

ALL = Recordings(ADAPTER, "json")
ENDS = (facts.TurnDone, facts.TurnFailed, facts.TurnStopped)
TURNS = (facts.TurnBegin, *ENDS)


def codec() -> Codec:
    return codec_of(ADAPTER, "json")


def turns(*lines: Any, ending: Exit | None = None) -> list[Any]:
    one = codec()
    return facts_of([*receive(one, *lines), *one.finish(ending or Exit(code=0))], *TURNS)


# -- the true end


def test_since_0_87_agent_settled_ends_the_turn() -> None:
    one = codec()
    assert facts_of(receive(one, AGENT_START, answer("hi"), agent_end(willRetry=False)), *ENDS) == []
    assert facts_of(receive(one, SETTLED), *ENDS) == [facts.TurnDone(stop_reason="end")]


def test_retried_attempt_stays_in_its_turn() -> None:
    retry = {"type": "auto_retry_start", "attempt": 1, "maxAttempts": 3, "delayMs": 2000, "errorMessage": "500 oops"}
    lines = [AGENT_START, failed("500 oops"), agent_end(willRetry=True), retry, AGENT_START, answer("hi")]
    assert turns(*lines, agent_end(willRetry=False), {"type": "auto_retry_end", "success": True}, SETTLED) == [
        facts.TurnBegin(),
        facts.TurnBegin(),  # the assembler merges it into the running turn
        facts.TurnDone(stop_reason="end"),
    ]
    assert facts_of(receive(codec(), *lines), facts.Retrying) == [facts.Retrying(1, 3, "500 oops", 2000)]


def test_exhausted_retries_fail_the_turn_with_the_last_error() -> None:
    gave_up = {"type": "auto_retry_end", "success": False, "attempt": 3, "finalError": "429: too many requests"}
    lines = [AGENT_START, failed("429: too many requests"), agent_end(willRetry=False), gave_up, SETTLED]
    assert turns(*lines)[1:] == [facts.TurnFailed(facts.Failure("RATE_LIMITED", "429: too many requests"))]


def test_until_0_73_the_next_start_ends_the_turn() -> None:
    one = codec()
    assert facts_of(receive(one, AGENT_START, answer("hi"), agent_end()), *ENDS) == []
    assert facts_of(receive(one, AGENT_START), *TURNS) == [facts.TurnDone(stop_reason="end"), facts.TurnBegin()]


def test_until_0_73_the_exit_ends_the_last_turn() -> None:
    assert turns(AGENT_START, answer("hi"), agent_end()) == [facts.TurnBegin(), facts.TurnDone(stop_reason="end")]


def test_until_0_73_a_live_run_probes_for_idle() -> None:
    talk = PiConversation(ADAPTER, interactive=True)
    talk.receive_response("mux-1", "get_state", sessionId="s")
    talk.receive_response("mux-2", "prompt")
    talk.receive(AGENT_START)
    talk.sent()
    talk.receive(answer("hi"), agent_end())
    assert talk.sent() == [{"id": "mux-3", "type": "get_state"}]
    assert facts_of(talk.receive_response("mux-3", "get_state", isStreaming=False, isCompacting=False), *ENDS) == [
        facts.TurnDone(stop_reason="end")
    ]


@pytest.mark.parametrize("busy", [{"isStreaming": True}, {"isCompacting": True}])
def test_until_0_73_a_busy_agent_keeps_its_turn_open(busy: dict[str, bool]) -> None:
    talk = PiConversation(ADAPTER, interactive=True)
    talk.receive_response("mux-1", "get_state", sessionId="s")
    talk.receive(AGENT_START, failed("500 oops"), agent_end())
    assert facts_of(talk.receive_response("mux-3", "get_state", **busy), *ENDS) == []
    talk.sent()
    talk.receive({"type": "auto_retry_start", "attempt": 1, "maxAttempts": 3, "delayMs": 1, "errorMessage": "500 oops"})
    talk.receive(AGENT_START, answer("hi"), agent_end())
    assert talk.sent() == [{"id": "mux-4", "type": "get_state"}]


def test_compaction_before_a_retry_stays_in_the_turn() -> None:
    compaction = {"type": "compaction_end", "reason": "overflow", "willRetry": True,
                  "result": {"summary": "all so far", "tokensBefore": 900, "estimatedTokensAfter": 100}}  # fmt: skip
    lines = [AGENT_START, failed("prompt is too long"), agent_end(), {"type": "compaction_start"}, compaction]
    one = codec()
    assert facts_of(receive(one, *lines), *ENDS, facts.ContextCompacted) == [facts.ContextCompacted("all so far", 800)]
    assert facts_of(receive(one, AGENT_START, answer("hi"), agent_end()), *TURNS) == [facts.TurnBegin()]
    assert facts_of(one.finish(Exit(code=0)), *ENDS) == [facts.TurnDone(stop_reason="end")]


def test_compaction_between_turns_is_a_note() -> None:
    compaction = {"type": "compaction_end", "reason": "manual", "result": {"summary": "all so far", "tokensBefore": 9}}
    facts_told = facts_of(receive(codec(), {"type": "compaction_start"}, compaction))
    assert facts_told == [facts.Note("the context was compacted: all so far")]


def test_failed_compaction_is_a_warning() -> None:
    compaction = {"type": "compaction_end", "errorMessage": "Nothing to compact", "aborted": False}
    assert facts_of(receive(codec(), compaction)) == [facts.Note("Nothing to compact", "warn")]


def test_repeated_summary_is_a_retry() -> None:
    line = {"type": "summarization_retry_scheduled", "attempt": 1, "maxAttempts": 3, "delayMs": 5}
    assert facts_of(receive(codec(), line)) == [facts.Retrying(1, 3, "unknown", 5)]


# -- how it ended


def test_api_error_fails_the_turn_despite_exit_code_0() -> None:
    lines = [AGENT_START, failed("401 Incorrect API key provided"), agent_end(willRetry=False), SETTLED]
    failure = facts.Failure("AUTH_ERROR", "401 Incorrect API key provided")
    assert turns(*lines, ending=Exit(code=0)) == [facts.TurnBegin(), facts.TurnFailed(failure)]


@pytest.mark.parametrize(
    "message",
    [
        answer("so fa", stopReason="aborted"),
        failed("This operation was aborted"),
        failed("Request was aborted."),
        failed("Interrupted by user"),
    ],
)
def test_abort_messages_stop_the_turn(message: dict[str, Any]) -> None:
    assert turns(AGENT_START, message, agent_end(willRetry=False), SETTLED)[1:] == [facts.TurnStopped()]


def test_error_after_an_interrupt_stops_the_turn() -> None:
    talk = PiConversation(ADAPTER, interactive=True)
    talk.receive_response("mux-1", "get_state", sessionId="s")
    talk.receive(AGENT_START)
    talk.request(Interrupt())
    assert facts_of(talk.receive(failed("terminated"), agent_end(willRetry=False), SETTLED), *ENDS) == [
        facts.TurnStopped()
    ]


def test_truncated_answer_completes_with_its_stop_reason() -> None:
    lines = [AGENT_START, answer("so fa", stopReason="length"), agent_end(willRetry=False), SETTLED]
    assert facts_of(receive(codec(), *lines), *ENDS) == [facts.TurnDone(stop_reason="length")]


def test_a_filtered_answer_is_not_a_crash() -> None:
    blocked = answer("I will", stopReason="error", errorMessage="Provider finish_reason: content_filter")
    [closing] = turns(AGENT_START, blocked, agent_end(willRetry=False), SETTLED)[1:]
    assert closing.failure.code == "CONTENT_FILTERED"


def test_error_without_message_fails_the_turn() -> None:
    [failure] = turns(AGENT_START, answer(stopReason="error"), agent_end(willRetry=False), SETTLED)[1:]
    assert failure == facts.TurnFailed(facts.Failure("AGENT_CRASH", "the agent reported a failure without a reason"))


def test_exit_during_a_turn_emits_no_closing() -> None:
    assert turns(AGENT_START, answer("hi"), ending=Exit(signal=9)) == [facts.TurnBegin()]


@pytest.mark.parametrize(
    ("complaint", "code"),
    [
        ("No session found matching 'nope'", "SESSION_NOT_FOUND"),
        ("No API key found for fake.", "AUTH_ERROR"),
        ("No models available. Set an API key", "AUTH_ERROR"),
    ],
)
def test_failed_start_is_explained_by_stderr(complaint: str, code: str) -> None:
    one = codec()
    receive(one, complaint.encode(), source=Source.STDERR)
    assert facts_of(one.finish(Exit(code=1))) == [facts.TurnFailed(facts.Failure(code, complaint))]


@pytest.mark.parametrize("complaint", ["Unknown option: --x", 'Model "x" not found. Set an API key to see more models'])
def test_unknown_stderr_emits_no_failure(complaint: str) -> None:
    one = codec()
    receive(one, complaint.encode(), source=Source.STDERR)
    assert facts_of(one.finish(Exit(code=1))) == []


# -- costs


def test_turn_cost_is_the_native_sum_of_its_calls() -> None:
    usage = {"input": 10, "output": 5, "cacheRead": 3, "cacheWrite": 0, "cost": {"total": 0.25}}
    lines = [AGENT_START, answer("a", usage=usage), answer("b", usage=usage), agent_end(willRetry=False), SETTLED]
    steps = receive(codec(), *lines)
    assert facts_of(steps, facts.Usage) == [facts.Usage(10, 5, None, 3, 0)] * 2
    [done] = facts_of(steps, facts.TurnDone)
    assert (done.cost.total_usd, done.cost.input_tokens, done.cost.source) == (0.5, 20, "native")
    assert facts_of(steps, facts.RunCost)[-1].cost == done.cost


def test_model_without_price_has_unknown_cost() -> None:
    usage = {"input": 10, "output": 5, "cacheRead": 0, "cacheWrite": 0, "cost": {"total": 0}}
    [cost] = facts_of(receive(codec(), AGENT_START, answer("a", usage=usage)), facts.RunCost)
    assert (cost.cost.total_usd, cost.cost.source) == (0.0, "unknown")


def test_failed_call_has_no_usage() -> None:
    usage = {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "cost": {"total": 0}}
    assert facts_of(receive(codec(), AGENT_START, failed("500 oops", usage=usage)), facts.Usage, facts.RunCost) == []


def test_reasoning_tokens_are_emitted_where_counted() -> None:
    [usage] = {fact.thinking_tokens for fact in ALL.facts("0.87.1/file_tools", facts.Usage)}
    assert usage is not None
    assert {fact.thinking_tokens for fact in ALL.facts("0.73.1/file_tools", facts.Usage)} == {None}


# -- sessions


def test_header_names_session_and_fork_origin() -> None:
    header = {"type": "session", "version": 3, "id": "new", "cwd": "/", "parentSession": "/x/2026-11-22_old.jsonl"}
    assert facts_of(receive(codec(), header)) == [facts.SessionKnown("new", forked_from="old")]


def test_options_decide_whether_a_session_is_resumed_or_forked() -> None:
    header = {"type": "session", "version": 3, "id": "s", "cwd": "/"}
    resumed = codec_of(ADAPTER, "json", session_id="s")
    assert facts_of(receive(resumed, header)) == [facts.SessionKnown("s", resumed=True)]
    forked = codec_of(ADAPTER, "json", fork_session_id="old")
    assert facts_of(receive(forked, header)) == [facts.SessionKnown("s", forked_from="old")]


def test_session_is_emitted_once() -> None:
    header = {"type": "session", "version": 3, "id": "s", "cwd": "/"}
    assert len(facts_of(receive(codec(), header, {**header, "id": "t"}))) == 1


def test_answering_model_is_emitted() -> None:
    header = {"type": "session", "version": 3, "id": "s", "cwd": "/"}
    named = answer("hi", provider="fake", model="fake-model")
    known = facts_of(receive(codec(), header, named, named), facts.SessionKnown)
    assert known == [facts.SessionKnown("s"), facts.SessionKnown("s", model="fake/fake-model")]


def test_model_call_that_answers_with_nothing_is_a_step() -> None:
    empty = facts_of(receive(codec(), AGENT_START, {"type": "turn_start"}, answer()), facts.StepBegin)
    assert empty == [facts.StepBegin(), facts.StepBegin("generation")]
    answered = facts_of(receive(codec(), AGENT_START, {"type": "turn_start"}, answer("hi")), facts.StepBegin)
    assert answered == [facts.StepBegin()]


def test_text_of_a_failed_model_call_stays_open_for_its_repetition() -> None:
    retry = {"type": "auto_retry_start", "attempt": 1, "maxAttempts": 3, "delayMs": 50, "errorMessage": "terminated"}
    broken = {"type": "text_delta", "contentIndex": 0, "delta": "half an"}
    message = failed("terminated")
    lines = [AGENT_START, {"type": "message_update", "assistantMessageEvent": broken}, message]
    read = receive(codec(), *lines, {"type": "turn_end", "message": message["message"], "toolResults": []}, retry)
    assert facts_of(read, facts.TextEnd, facts.StepDone) == []
    assert len(facts_of(read, facts.Retrying)) == 1
