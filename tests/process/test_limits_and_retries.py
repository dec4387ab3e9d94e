"""Limits that end a run, and retries of failed runs. Every wait is bounded."""

from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.process.checked_runs import run_to_end, types, watch
from tests.process.scripted import MakeClient

from agent_mux import RetryPolicy

pytestmark = [pytest.mark.anyio, pytest.mark.local_and_remote]

SOON = RetryPolicy(base_delay=0.01, jitter=0)
COUNTED = """
from pathlib import Path
tries = Path("tries"); number = len(tries.read_text()) if tries.exists() else 0; tries.write_text("x" * (number + 1))
read(); emit(session=f"S{number}"); emit(text=f"try {number}")
"""


@pytest.mark.slow
@pytest.mark.promise("retry")
@pytest.mark.parametrize("end", ["sys.exit(1)", "sys.exit(0)", "sys.exit(emit(failed='RATE_LIMITED'))"])
async def test_failed_run_is_retried(make_client: MakeClient, tmp_path: Path, end: str) -> None:
    body = f"{COUNTED}\nif number < 2: {end}\nemit(done=True); drain()"
    events, result = await run_to_end(make_client, body, retry_policy=SOON, cwd=tmp_path)
    assert (result.exit_reason, result.text) == ("completed", "try 2")
    retries = [event for event in events if event.type == "retry"]
    assert [(event.attempt, event.max_attempts, event.delay_ms) for event in retries] == [(1, 3, 10), (2, 3, 20)]
    assert types(events, "session_start", "session_end") == ["session_start", "session_end"]
    assert types(events, "turn_start", "turn_end", "retry") == ["turn_start", "turn_end", "retry"] * 2 + [
        "turn_start",
        "turn_end",
    ]
    assert result.messages == ["try 2"]


async def test_last_attempt_determines_the_result(make_client: MakeClient, tmp_path: Path) -> None:
    events, result = await run_to_end(make_client, f"{COUNTED}\nsys.exit(number + 4)", retry_policy=SOON, cwd=tmp_path)
    assert (result.exit_reason, result.exit_code) == ("crashed", 6)
    assert types(events, "retry", "crash") == ["retry", "retry", "crash"]


@pytest.mark.parametrize(
    "fields",
    [{}, {"retry_policy": RetryPolicy(max_attempts=1)}, {"retry_policy": RetryPolicy(retry_on=frozenset({"TIMEOUT"}))}],
)
async def test_failure_outside_the_retry_policy_is_not_retried(
    make_client: MakeClient, tmp_path: Path, fields: dict[str, Any]
) -> None:
    events, result = await run_to_end(make_client, f"{COUNTED}\nsys.exit(4)", cwd=tmp_path, **fields)
    assert result.exit_reason == "crashed"
    assert types(events, "retry") == []


async def test_run_can_be_aborted_between_attempts(make_client: MakeClient, tmp_path: Path) -> None:
    with anyio.fail_after(20):
        async with make_client(f"{COUNTED}\nsys.exit(4)") as mux:
            run = mux.run(prompt="hi", retry_policy=RetryPolicy(base_delay=100, max_delay=100), cwd=tmp_path)
            async for event in run:
                if event.type == "retry":
                    await run.abort()
            events, result = await watch(run)
    assert result.exit_reason == "aborted"
    assert types(events, "retry", "aborted", "crash") == ["retry", "aborted"]


@pytest.mark.slow
async def test_timeout_covers_all_attempts(make_client: MakeClient, tmp_path: Path) -> None:
    policy = RetryPolicy(max_attempts=100, base_delay=0.05, max_delay=0.05)
    _, result = await run_to_end(make_client, f"{COUNTED}\nsys.exit(4)", retry_policy=policy, timeout=1, cwd=tmp_path)
    assert result.exit_reason == "timeout"
    assert result.error is not None
    assert result.error.message == "the run exceeded its time limit of 1s (the run option timeout)"


# -- budgets


@pytest.mark.promise("budget-stops")
async def test_token_budget_stops_the_run(make_client: MakeClient) -> None:
    body = "read(); emit(text='x')\nfor _ in range(3): emit(used=[40, 10])\ndrain()"
    events, result = await run_to_end(make_client, body, max_tokens_total=120)
    assert result.exit_reason == "budget"
    assert result.error is not None
    assert result.error.code == "BUDGET_EXCEEDED"
    assert result.error.message == ("the run used 150 tokens, more than 120 (the run option max_tokens_total)")
    assert types(events, "error", "session_end") == ["error", "session_end"]


@pytest.mark.promise("budget-stops")
async def test_cost_budget_stops_the_run(make_client: MakeClient) -> None:
    body = "read(); emit(text='x'); emit(cost=0.3); emit(cost=0.6); drain()"
    _, result = await run_to_end(make_client, body, max_cost_usd=0.5)
    assert (result.exit_reason, result.error and result.error.code) == ("budget", "BUDGET_EXCEEDED")
    assert result.error is not None
    assert result.error.message == "the run cost $0.6000, more than $0.5 (the run option max_cost_usd)"


async def test_run_within_its_budget_completes(make_client: MakeClient) -> None:
    body = "read(); emit(text='x'); emit(used=[40, 10]); emit(cost=0.3); emit(done=True); drain()"
    _, result = await run_to_end(make_client, body, max_cost_usd=0.5, max_tokens_total=50)
    assert result.exit_reason == "completed"


@pytest.mark.promise("unenforceable-budget")
async def test_unenforceable_budget_emits_a_warning(make_client: MakeClient) -> None:
    body = "read(); emit(text='x'); emit(used=[40, 10]); emit(done=True); drain()"
    events, result = await run_to_end(make_client, body, max_cost_usd=0.5)
    assert result.exit_reason == "completed"
    assert [event.level for event in events if event.type == "debug" and "max_cost_usd" in event.message] == ["warn"]
