"""The decision about the next attempt: wait for a reset, repeat, or fall back."""

from typing import Any

import pytest

from agent_mux.assembler import Verdict
from agent_mux.events import QuotaWindow
from agent_mux.run.attempts import AttemptCounter
from agent_mux.sdk.facts import Failure
from agent_mux.sdk.options import RetryPolicy

NOW = 1_000_000.0
HOUR = (QuotaWindow("five_hour", 1.0, round((NOW + 3600) * 1000)), QuotaWindow("seven_day", 0.5, 9_000_000_000))
FALLBACK: Any = object()
POLICY = RetryPolicy(max_attempts=3, base_delay=1, jitter=0)


def refused(retry_after: float | None = None) -> Verdict:
    wait = None if retry_after is None else round(retry_after * 1000)
    return Verdict(exit_reason="failed", failure=Failure("RATE_LIMITED", "slow down", retry_after_ms=wait))


def test_wait_is_until_the_last_exhausted_window_resets() -> None:
    following = AttemptCounter(None, wait_for_quota=0).next(refused(5), HOUR, NOW)
    assert following is not None
    assert (following.delay, following.max_attempts, following.plan) == (3601.0, 0, None)


def test_wait_without_windows_is_the_requested_delay() -> None:
    following = AttemptCounter(None, wait_for_quota=60).next(refused(5), (), NOW)
    assert following is not None
    assert following.delay == 5.0


def test_waits_are_limited_in_total() -> None:
    counter = AttemptCounter(None, wait_for_quota=60)
    assert counter.next(refused(40), (), NOW) is not None
    assert counter.next(refused(40), (), NOW) is None
    assert (
        counter.take_note()
        == "this run does not wait for the quota: it resets in 40 s, more than wait_for_quota allows"
    )
    assert counter.take_note() is None


def test_reset_is_waited_for_once() -> None:
    counter = AttemptCounter(None, wait_for_quota=0)
    assert counter.next(refused(), HOUR, NOW) is not None
    assert counter.next(refused(), HOUR, NOW + 3601) is None
    assert "still refuses after its reset" in (counter.take_note() or "")


def test_reset_in_the_past_is_not_asked_without_a_pause() -> None:
    following = AttemptCounter(None, wait_for_quota=0).next(refused(), HOUR, NOW + 9999)
    assert following is not None
    assert following.delay == 1.0


def test_wait_does_not_count_as_a_retry() -> None:
    counter = AttemptCounter(POLICY, wait_for_quota=0)
    decisions = [counter.next(refused(), HOUR, NOW) for _ in range(4)]
    assert [one and (one.attempt, one.max_attempts, one.delay) for one in decisions] == [
        (1, 0, 3601.0),
        (2, 3, 1.0),
        (3, 3, 2.0),
        None,
    ]


@pytest.mark.parametrize(("requested", "falls_back"), [(None, False), (30, False), (31, True)])
def test_long_delay_of_a_retry_gives_way_to_the_fallback(requested: float | None, *, falls_back: bool) -> None:
    following = AttemptCounter(POLICY, fallbacks=[FALLBACK]).next(refused(requested), (), NOW)
    assert following is not None
    assert (following.plan is FALLBACK) is falls_back


def test_each_fallback_has_its_own_retries() -> None:
    counter = AttemptCounter(RetryPolicy(max_attempts=2, base_delay=1, jitter=0), fallbacks=[FALLBACK])
    decisions = [counter.next(refused(), (), NOW) for _ in range(4)]
    assert [one and (one.attempt, one.plan is FALLBACK) for one in decisions] == [
        (1, False), (2, True), (3, False), None,
    ]  # fmt: skip


@pytest.mark.parametrize(
    "verdict",
    [
        Verdict(exit_reason="completed"),
        Verdict(exit_reason="aborted", failure=Failure("ABORTED", "x")),
        Verdict(exit_reason="failed", failure=Failure("AUTH_ERROR", "x")),
        Verdict(exit_reason="crashed", failure=Failure("AGENT_CRASH", "x")),
    ],
)
def test_only_a_refusal_waits_or_falls_back(verdict: Verdict) -> None:
    counter = AttemptCounter(None, wait_for_quota=0, fallbacks=[FALLBACK])
    assert counter.next(verdict, HOUR, NOW) is None
    assert counter.take_note() is None
