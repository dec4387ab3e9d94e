"""Rate limits: the token bucket of each caller."""

from typing import Any

import pytest

from agent_mux.service.security import rate_limits
from agent_mux.service.security.rate_limits import RateLimitedError, RateLimiter, charge, rate_headers
from agent_mux.service.security.tokens import LOCAL_CALLER, Caller, RateLimits


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def caller(name: str, requests: int | None = None, runs: int | None = None) -> Caller:
    return Caller(name, frozenset({"run"}), name, RateLimits(requests, runs))


def admitted(limiter: RateLimiter, who: Caller, count: int) -> int:
    """Return how many of so many requests at once are admitted."""
    number = 0
    for _ in range(count):
        try:
            limiter.take(who, "requests")
        except RateLimitedError:
            continue
        number += 1
    return number


def test_a_bucket_holds_a_minute_and_is_refilled_continuously(clock: Clock) -> None:
    limiter = RateLimiter(RateLimits(requests=6), clock)
    assert admitted(limiter, caller("a"), 100) == 6
    clock.now += 10
    assert admitted(limiter, caller("a"), 100) == 1
    clock.now += 3600
    assert admitted(limiter, caller("a"), 100) == 6


def test_the_time_until_the_next_request_is_stated(clock: Clock) -> None:
    limiter = RateLimiter(RateLimits(requests=6), clock)
    assert admitted(limiter, caller("a"), 6) == 6
    clock.now += 4
    with pytest.raises(
        RateLimitedError, match="limit of 6 requests per minute is reached; try again in 6 s"
    ) as refused:
        limiter.take(caller("a"), "requests")
    assert (refused.value.code, refused.value.retry_after, refused.value.recoverable) == ("LIMIT_EXCEEDED", 6, True)
    clock.now += refused.value.retry_after
    assert admitted(limiter, caller("a"), 100) == 1


def test_callers_do_not_share_a_bucket(clock: Clock) -> None:
    limiter = RateLimiter(RateLimits(requests=2), clock)
    assert admitted(limiter, caller("a"), 100) == 2
    assert admitted(limiter, caller("b"), 1) == 1
    assert admitted(limiter, LOCAL_CALLER, 100) == 2


@pytest.mark.parametrize(("own", "count"), [(None, 2), (0, 50), (5, 5)])
def test_the_limit_of_a_token_overrides_that_of_the_server(clock: Clock, own: int | None, count: int) -> None:
    assert admitted(RateLimiter(RateLimits(requests=2), clock), caller("a", own), 50) == count


def test_requests_and_runs_have_limits_of_their_own(clock: Clock) -> None:
    limiter = RateLimiter(RateLimits(requests=3, runs=1), clock)
    limiter.take(caller("a"), "runs")
    with pytest.raises(RateLimitedError, match="run starts per minute"):
        limiter.take(caller("a"), "runs")
    assert admitted(limiter, caller("a"), 10) == 3


def test_stopping_an_agent_is_never_refused(clock: Clock) -> None:
    limiter = RateLimiter(RateLimits(requests=1), clock)
    for _ in range(3):
        charge({}, limiter, caller("a"), "requests", "/v1/runs/x/abort")
    with pytest.raises(RateLimitedError):
        charge({}, limiter, caller("a"), "requests", "/v1/runs/x/approve")


def test_memory_is_bounded_by_the_callers_of_the_last_minute(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rate_limits, "PRUNE_AT", 10)
    limiter = RateLimiter(RateLimits(requests=5), clock)
    for number in range(1000):
        limiter.take(caller(str(number)), "requests")
        clock.now += 60
    assert len(limiter._buckets) <= 10


def test_the_fields_of_a_response_are_those_of_the_draft(clock: Clock) -> None:
    state: dict[str, Any] = {}
    limiter = RateLimiter(RateLimits(requests=60, runs=6), clock)
    assert rate_headers(state) == {}
    charge(state, limiter, caller("a"), "requests")
    charge(state, limiter, caller("a"), "runs")
    assert rate_headers(state) == {
        "ratelimit-policy": '"requests";q=60;w=60, "runs";q=6;w=60',
        "ratelimit": '"requests";r=59;t=1, "runs";r=5;t=10',
        "ratelimit-limit": "6",
        "ratelimit-remaining": "5",
        "ratelimit-reset": "10",
    }
