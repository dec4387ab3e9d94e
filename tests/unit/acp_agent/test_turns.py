"""The outcome of a prompt."""

from dataclasses import replace
from typing import Any, cast

import pytest
from acp import RequestError

from agent_mux.acp_server.turns import EditorTurn, prompt_response, run_outcome, turn_outcome
from agent_mux.events import CostRecord, ErrorEvent
from agent_mux.run.ledger import Ledger
from agent_mux.run.result import RunError, RunResult


def failed(code: Any, message: str = "why") -> ErrorEvent:
    return ErrorEvent("R", "a", 1, code, message, True)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (None, "end_turn"), (failed("ABORTED"), "cancelled"), (failed("CONTEXT_EXCEEDED"), "max_tokens"),
        (failed("TURN_LIMIT"), "max_turn_requests"),
    ],
)  # fmt: skip
def test_stop_reasons_of_turns(error: ErrorEvent | None, reason: str) -> None:
    assert turn_outcome(error, "log in") == reason


def test_cut_answer_has_the_stop_reason_max_tokens() -> None:
    assert turn_outcome(None, "", "length") == "max_tokens"
    assert turn_outcome(None, "", "end") == "end_turn"
    assert run_outcome(replace(ended("completed", None), stop_reason="length"), "") == "max_tokens"


def test_an_auth_error_contains_the_guidance() -> None:
    outcome = turn_outcome(failed("AUTH_ERROR", "no key"), "run x login")
    assert isinstance(outcome, RequestError)
    assert (outcome.code, str(outcome)) == (-32000, "no key (run x login)")


@pytest.mark.parametrize(
    ("exit_reason", "code", "reason"),
    [
        ("completed", None, "end_turn"), ("interrupted", "ABORTED", "cancelled"), ("aborted", "ABORTED", "cancelled"),
        ("turn_limit", "TURN_LIMIT", "max_turn_requests"), ("failed", "CONTEXT_EXCEEDED", "max_tokens"),
    ],
)  # fmt: skip
def test_stop_reasons_of_runs(exit_reason: Any, code: Any, reason: str) -> None:
    assert run_outcome(ended(exit_reason, code), "") == reason


@pytest.mark.parametrize(
    "exit_reason", ["failed", "truncated", "timeout", "inactivity", "budget", "crashed", "killed", "lost"]
)
def test_other_exit_reasons_are_errors(exit_reason: Any) -> None:
    outcome = run_outcome(ended(exit_reason, "AGENT_CRASH"), "")
    assert isinstance(outcome, RequestError)
    assert outcome.data == {"code": "AGENT_CRASH", "recoverable": False}


def test_a_cancelled_turn_has_the_stop_reason_cancelled() -> None:
    turn = EditorTurn()
    turn.is_cancelled = True
    turn.finish(cast("Any", RequestError.internal_error()))
    assert turn.response().stop_reason == "cancelled"


def test_usage_is_that_of_the_turn() -> None:
    usage = prompt_response("end_turn", CostRecord(1.0, 10, 5, 2, 100, 7)).usage
    assert usage is not None
    assert usage.model_dump(by_alias=True, exclude_none=True) == {
        "totalTokens": 122, "inputTokens": 10, "outputTokens": 5, "thoughtTokens": 2, "cachedReadTokens": 100,
        "cachedWriteTokens": 7,
    }  # fmt: skip


def ended(exit_reason: Any, code: Any) -> RunResult:
    return RunResult(
        run_id="R", agent="a", model=None, session_id=None, exit_reason=exit_reason, exit_code=0, signal=None,
        duration_ms=1, turn_count=1, cost=None, token_usage=None, ledger=Ledger(),
        error=None if code is None else RunError(code, "why"),
    )  # fmt: skip
