"""Building the result of a run from its events."""

import json
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from tests.unit.run.scripted_run import RUN_ID

from agent_mux.assembler import Verdict
from agent_mux.assembler.interactions import DeniedApproval
from agent_mux.events import (
    AgentEvent,
    CostRecord,
    MessageStopEvent,
    RetryEvent,
    SessionEndEvent,
    TokenUsageEvent,
    ToolCallStartEvent,
    ToolErrorEvent,
    TurnEndEvent,
    TurnStartEvent,
)
from agent_mux.run import result_builder as module
from agent_mux.run.changed_files import ChangedFile
from agent_mux.run.ledger import Ledger
from agent_mux.run.result import Denial, RunResult
from agent_mux.run.result_builder import ResultBuilder
from agent_mux.sdk.facts import ApprovalRequested, Failure
from agent_mux.sdk.options import FAIL_ON, FailOn

HEAD = (RUN_ID, "scripted", 1)
COMPLETED = Verdict(exit_reason="completed")
COST = CostRecord(total_usd=0.5, input_tokens=3, output_tokens=4)


def message(text: str, subagent: str | None = None) -> MessageStopEvent:
    return MessageStopEvent(*HEAD, text, subagent_id=subagent)


def turn(number: int, *texts: str) -> list[AgentEvent]:
    return [TurnStartEvent(*HEAD, number), *map(message, texts), TurnEndEvent(*HEAD, number)]


def build(
    events: list[AgentEvent],
    *,
    verdict: Verdict = COMPLETED,
    collect: bool = False,
    bounded: bool = True,
    denied: Sequence[DeniedApproval] = (),
    fail_on: Sequence[FailOn] = (),
    changed_files: Sequence[dict[str, Any]] | None = None,
    **known: Any,
) -> RunResult:
    builder = ResultBuilder(collect=collect, bounded=bounded)
    for event in events:
        builder.observe([event])
    derive = known.pop("derive", lambda: events)
    about = {
        "run_id": RUN_ID, "agent": "scripted", "exit_code": 0, "signal": None, "duration_ms": 7, "journal": None,
        **known,
    }  # fmt: skip
    about_agent = {"agent_version": None, "model": None, "session_id": "S1", "quota": (), "attempts": ()}
    assembler = SimpleNamespace(**about_agent, structured_output=None, model_calls=None, denied=denied)
    normalizer: Any = SimpleNamespace(
        assembler=assembler,
        verdict=verdict,
        stderr_tail="tail",
        ledger=Ledger(),
        changed_files=changed_files,
        worktree=None,
    )
    return builder.build(normalizer, derive=derive, fail_on=fail_on, **about)


def test_the_text_is_that_of_the_last_turn() -> None:
    result = build([*turn(0, "a", "b"), *turn(1, "c", "d")])
    assert result.text == "c\n\nd"
    assert result.messages == ["a", "b", "c", "d"]
    assert result.turn_count == 2
    assert result.ok


def test_a_run_without_messages_has_no_text() -> None:
    assert (build([]).text, build([]).messages, build([]).turn_count) == ("", [], 0)
    assert build([*turn(0, "a"), *turn(1)]).text == ""


def test_messages_of_sub_agents_are_not_in_the_text() -> None:
    start, end = turn(0)
    assert build([start, message("inside", "sub"), message("outside"), end]).text == "outside"


def test_text_of_an_abandoned_model_call_is_not_in_the_result() -> None:
    start, end = turn(0)
    broken = MessageStopEvent(*HEAD, "half an ans", True)
    result = build([start, message("first"), broken, RetryEvent(*HEAD, 1, 3, "dropped", 0), message("answer"), end])
    assert (result.text, result.messages) == ("first\n\nanswer", ["first", "answer"])


def test_messages_of_an_earlier_attempt_are_not_in_the_result() -> None:
    result = build([*turn(0, "half an ans"), RetryEvent(*HEAD, 1, 3, "crashed", 0), *turn(1, "answer")])
    assert (result.text, result.messages, result.turn_count) == ("answer", ["answer"], 2)


def test_tokens_are_summed_and_unknown_counts_stay_none() -> None:
    usage = [
        TokenUsageEvent(*HEAD, 10, 1),
        TokenUsageEvent(*HEAD, 20, 2, None, 5),
        TokenUsageEvent(*HEAD, 0, 0, None, 1),
    ]
    tokens = build([*usage]).token_usage
    assert tokens is not None
    assert (tokens.input_tokens, tokens.output_tokens, tokens.thinking_tokens, tokens.cached_tokens) == (30, 3, None, 6)
    assert build([]).token_usage is None


def test_the_cost_is_that_of_the_session_end() -> None:
    assert build([SessionEndEvent(*HEAD, "S1", 1, COST)]).cost == COST
    assert build([SessionEndEvent(*HEAD, "S1", 1)]).cost is None


def test_a_failed_run_has_an_error() -> None:
    verdict = Verdict(exit_reason="failed", failure=Failure("RATE_LIMITED", "slow down"))
    result = build([], verdict=verdict)
    assert not result.ok
    assert result.error is not None
    assert (result.error.code, result.error.message, result.error.stderr) == ("RATE_LIMITED", "slow down", "tail")
    assert result.error.recoverable


def test_events_are_kept_only_when_asked_for() -> None:
    events = turn(0, "a")
    assert build(events).events is None
    assert build(events, collect=True).events == tuple(events)


def test_long_texts_are_derived_from_the_journal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_TEXT_IN_MEMORY", 10)
    broken = MessageStopEvent(*HEAD, "ab", True)
    events = [*turn(0, "0123456789"), *turn(1, "abc", "def")[:-1], broken, TurnEndEvent(*HEAD, 1)]
    derived = []

    def derive() -> list[AgentEvent]:
        derived.append(1)
        return events

    bounded, unbounded = build(events, derive=derive), build(events, bounded=False, derive=derive)
    assert unbounded.text == "abc\n\ndef"
    assert derived == []
    assert bounded.text == "abc\n\ndef"
    assert bounded.messages == ["0123456789", "abc", "def"]
    assert derived


def test_absent_fields_are_omitted_on_the_wire() -> None:
    verdict = Verdict(exit_reason="failed", failure=Failure("AGENT_CRASH", "broken"))
    plain = build(
        [*turn(0, "a"), SessionEndEvent(*HEAD, "S1", 1, COST)], verdict=verdict, exit_code=None, signal=9
    ).to_dict()
    assert json.loads(json.dumps(plain)) == {
        "type": "run_result",
        "runId": RUN_ID,
        "agent": "scripted",
        "sessionId": "S1",
        "text": "a",
        "exitReason": "failed",
        "signal": 9,
        "durationMs": 7,
        "turnCount": 1,
        "cost": {"totalUsd": 0.5, "inputTokens": 3, "outputTokens": 4},
        "error": {"code": "AGENT_CRASH", "message": "broken", "stderr": "tail", "recoverable": False},
        "toolCalls": 0,
        "toolErrors": 0,
        "denials": [],
        "changedFiles": [],
        "ledger": Ledger().to_dict(),
    }


# -- what the run did, and did not do

ASKED = ApprovalRequested("1", "Write a file", "probe.txt", "medium", tool_name="Write")
CUT = [TurnStartEvent(*HEAD, 0), TurnEndEvent(*HEAD, 0, None, "length")]
FAILED_CALL = ToolErrorEvent(*HEAD, "c1", "Bash", "no")


def test_tool_calls_of_the_main_agent_are_counted() -> None:
    inside = ToolCallStartEvent(*HEAD, "c2", "Read", "{}", subagent_id="s")
    result = build([ToolCallStartEvent(*HEAD, "c1", "Bash", "{}"), inside, FAILED_CALL])
    assert (result.tool_calls, result.tool_errors) == (1, 1)


def test_denials_have_the_request_and_the_reason() -> None:
    result = build([], denied=[DeniedApproval("I1", ASKED, "the approval mode is deny")])
    assert result.denials == (Denial("Write a file", "probe.txt", "Write", "the approval mode is deny"),)
    assert result.to_dict()["denials"] == [
        {"action": "Write a file", "detail": "probe.txt", "toolName": "Write", "reason": "the approval mode is deny"}
    ]


def test_stop_reason_is_that_of_the_last_turn() -> None:
    assert build(CUT).stop_reason == "length"
    assert build([*CUT, *turn(1, "a")]).stop_reason is None


FILTERED = Verdict(exit_reason="failed", failure=Failure("CONTENT_FILTERED", "blocked"))


@pytest.mark.parametrize(
    ("condition", "events", "known"),
    [
        ("denied", [], {"denied": [DeniedApproval("I1", ASKED, None)]}),
        ("tool_error", [FAILED_CALL], {}),
        ("no_change", [], {}),
        ("length", CUT, {}),
        ("filtered", [], {"verdict": FILTERED}),
    ],
)
def test_condition_that_holds_fails_the_run(condition: FailOn, events: list[AgentEvent], known: Any) -> None:
    result = build(events, fail_on=(condition,), **known)
    assert (result.failed_on, result.ok, result.to_dict()["failedOn"]) == ((condition,), False, [condition])
    assert build(events, **known).failed_on == ()


def test_condition_that_does_not_hold_changes_nothing() -> None:
    result = build(turn(0, "a"), fail_on=FAIL_ON, changed_files=[ChangedFile("x", "created", 1, 0).to_dict()])
    assert (result.failed_on, result.ok) == ((), True)
    assert "failedOn" not in result.to_dict()


def test_conditions_are_not_checked_for_a_run_that_was_ended() -> None:
    aborted = Verdict(exit_reason="aborted", failure=Failure("ABORTED", "the run was aborted"))
    assert build([], verdict=aborted, fail_on=FAIL_ON).failed_on == ()


def test_figures_are_read_back() -> None:
    changed = (ChangedFile("a.py", "modified", 1, 2), ChangedFile("b.bin", "created"))
    denied = [DeniedApproval("I1", ASKED, None)]
    result = build(
        [FAILED_CALL, *CUT],
        denied=denied,
        fail_on=("denied",),
        changed_files=[file.to_dict() for file in changed],
        model_calls=3,
    )
    assert RunResult.from_dict(json.loads(json.dumps(result.to_dict()))) == result
