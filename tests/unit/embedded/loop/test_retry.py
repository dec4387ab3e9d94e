"""Retry policy of model calls."""

import pytest
from tests.unit.embedded.providers.wires import BACKENDS, run

from agent_loop.behavior import RetrySettings
from agent_loop.errors import AuthenticationError, NetworkError, ProviderError, QuotaExceededError, RateLimitedError
from agent_loop.loop.retry import MAX_REQUESTED_DELAY, call_with_retries, delay_before, should_retry

DOWN = NetworkError("down")


def middle() -> float:
    return 0.5


@pytest.mark.parametrize(("attempt", "delay"), [(2, 1), (3, 2), (4, 4), (5, 8), (6, 16), (7, 30), (5000, 30)])
def test_delay_grows_exponentially_up_to_the_maximum(attempt: int, delay: float) -> None:
    assert delay_before(attempt, RetrySettings(), DOWN, middle) == delay


@pytest.mark.parametrize(("chance", "delay"), [(0.0, 0.8), (0.5, 1.0), (1.0, 1.2)])
def test_jitter_takes_or_adds_up_to_twenty_percent(chance: float, delay: float) -> None:
    assert delay_before(2, RetrySettings(), DOWN, lambda: chance) == pytest.approx(delay)


@pytest.mark.parametrize(
    ("asked", "delay"), [(7.5, 7.5), (0.1, 1.0), (None, 1.0), (MAX_REQUESTED_DELAY * 3, MAX_REQUESTED_DELAY)]
)
def test_retry_after_of_the_provider_is_respected(asked: float | None, delay: float) -> None:
    assert delay_before(2, RetrySettings(), RateLimitedError("slow", retry_after=asked), middle) == delay


class Calls:
    """A model call that raises the given errors, then answers."""

    def __init__(self, *failures: Exception) -> None:
        self.failures = list(failures)
        self.made = 0
        self.slept: list[float] = []
        self.received: list[tuple[int, int, str, float]] = []

    async def call(self) -> str:
        self.made += 1
        if self.failures:
            raise self.failures.pop(0)
        return "answer"

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)

    async def on_retry(self, attempt: int, most: int, error: ProviderError, delay: float) -> None:
        self.received.append((attempt, most, error.kind, delay))

    async def go(self, settings: RetrySettings) -> str:
        return await call_with_retries(self.call, settings, sleep=self.sleep, chance=middle, on_retry=self.on_retry)


@pytest.mark.parametrize("backend", BACKENDS)
def test_retryable_errors_are_retried_and_reported(backend: str) -> None:
    calls = Calls(DOWN, RateLimitedError("slow", retry_after=5))
    assert run(lambda: calls.go(RetrySettings()), backend) == "answer"
    assert calls.slept == [1.0, 5]
    assert calls.received == [(2, 4, "network", 1.0), (3, 4, "rate_limited", 5)]


@pytest.mark.parametrize("error", [AuthenticationError("no"), ProviderError("no"), ValueError("a bug")])
def test_errors_that_are_not_retryable_fail_at_once(error: Exception) -> None:
    calls = Calls(error)
    with pytest.raises(type(error), match=str(error)):
        run(lambda: calls.go(RetrySettings()))
    assert (calls.made, calls.slept, calls.received) == (1, [], [])


@pytest.mark.parametrize(("retries", "made"), [(0, 1), (1, 2), (3, 4)])
def test_max_retries_bounds_the_attempts(retries: int, made: int) -> None:
    calls = Calls(*[DOWN] * 10)
    with pytest.raises(NetworkError):
        run(lambda: calls.go(RetrySettings(max_retries=retries)))
    assert calls.made == made
    assert len(calls.received) == retries


def test_a_pause_longer_than_anybody_waits_is_not_made() -> None:
    calls = Calls(RateLimitedError("tomorrow", retry_after=MAX_REQUESTED_DELAY + 1))
    with pytest.raises(RateLimitedError):
        run(lambda: calls.go(RetrySettings()))
    assert calls.made == 1


def test_status_codes_replace_the_kinds_of_errors_that_have_a_status() -> None:
    settings = RetrySettings(status_codes=frozenset({418, 429}))
    for error, is_retried in [
        (ProviderError("teapot", status=418), True),
        (NetworkError("down", status=503), False),
        (NetworkError("no connection"), True),
        (RateLimitedError("slow", status=429), True),
        (QuotaExceededError("no credit", status=429), False),
    ]:
        assert should_retry(2, settings, error) is is_retried
    assert should_retry(2, RetrySettings(), NetworkError("down", status=503))
