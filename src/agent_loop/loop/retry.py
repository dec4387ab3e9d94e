"""Retry policy of model calls: which errors are retried, and after which delay.

Sleep and randomness are passed in by the caller.
"""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from agent_loop.behavior import RetrySettings
from agent_loop.errors import ProviderError, QuotaExceededError, RateLimitedError

Answer = TypeVar("Answer")
OnRetry = Callable[[int, int, ProviderError, float], Awaitable[None]]
"""Receives the next attempt (from 2), the maximum number of attempts, the error, and the delay in seconds."""

MAX_REQUESTED_DELAY = 300.0
"""Seconds. A provider that requests a longer delay is not retried, so that no run stalls for that long."""


def delay_before(attempt: int, settings: RetrySettings, error: ProviderError, chance: Callable[[], float]) -> float:
    """Return the seconds to wait before this attempt (2 is the first retry): exponential, with jitter.

    The delay is never shorter than the provider requests, up to `MAX_REQUESTED_DELAY`. `chance` returns a number from 0
    to 1.
    """
    spread = 1 + settings.jitter * (2 * chance() - 1)
    backoff = _backoff(attempt, settings) * spread
    return max(0.0, backoff, min(_requested_delay(error), MAX_REQUESTED_DELAY))


def should_retry(attempt: int, settings: RetrySettings, error: ProviderError) -> bool:
    """Return whether to make this attempt (from 2) after the error."""
    is_allowed = attempt <= settings.max_retries + 1 and _requested_delay(error) <= MAX_REQUESTED_DELAY
    return is_allowed and _is_retryable(settings, error)


async def call_with_retries(
    call: Callable[[], Awaitable[Answer]],
    settings: RetrySettings,
    *,
    sleep: Callable[[float], Awaitable[None]],
    chance: Callable[[], float],
    on_retry: OnRetry,
) -> Answer:
    """Return the result of `call`, repeated after retryable errors; await `on_retry` before each delay.

    Raises the `ProviderError` of the last attempt unchanged. Other exceptions are raised at once.
    """
    attempt = 1
    while True:
        try:
            return await call()
        except ProviderError as error:
            attempt += 1
            if not should_retry(attempt, settings, error):
                raise
            delay = delay_before(attempt, settings, error, chance)
            await on_retry(attempt, settings.max_retries + 1, error, delay)
        await sleep(delay)


def _is_retryable(settings: RetrySettings, error: ProviderError) -> bool:
    if settings.status_codes is None or error.status is None:
        return error.retryable
    # An account without credit responds with the status of a rate limit.
    return error.status in settings.status_codes and not isinstance(error, QuotaExceededError)


def _backoff(attempt: int, settings: RetrySettings) -> float:
    try:
        delay = settings.initial_delay * settings.multiplier ** (attempt - 2)
    except OverflowError:
        return settings.max_delay
    return min(delay, settings.max_delay)


def _requested_delay(error: ProviderError) -> float:
    return (error.retry_after or 0.0) if isinstance(error, RateLimitedError) else 0.0
