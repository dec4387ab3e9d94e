"""When a failed model call is asked again, and how long to wait. Source: phi-core, "RetryEngine"; loop spec, section 5.

Pure, besides what is handed in: the clock (`sleep`) and chance belong to the caller.
"""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from agent_loop.behavior import RetrySettings
from agent_loop.errors import ProviderError, RateLimitedError

Answer = TypeVar("Answer")
OnRetry = Callable[[int, int, ProviderError, float], Awaitable[None]]
"""Given the attempt that comes (from 2), how many there may be, what failed, and the delay in seconds."""

MAX_REQUESTED_DELAY = 300.0
"""Seconds. A provider that wants a longer pause is not asked again: no run should stand still for that long."""


def delay_before(attempt: int, settings: RetrySettings, error: ProviderError, chance: Callable[[], float]) -> float:
    """Seconds to wait before this attempt (the first repetition is 2): exponential, with jitter.

    Never less than the provider asked for, up to `LONGEST_WAIT`. `chance` gives a number from 0 to 1.
    """
    spread = 1 + settings.jitter * (2 * chance() - 1)
    backoff = _backoff(attempt, settings) * spread
    return max(0.0, backoff, min(_requested_delay(error), MAX_REQUESTED_DELAY))


def should_retry(attempt: int, settings: RetrySettings, error: ProviderError) -> bool:
    """Whether this attempt (from 2) should be made after that error."""
    return error.retryable and attempt <= settings.max_retries + 1 and _requested_delay(error) <= MAX_REQUESTED_DELAY


async def call_with_retries(
    call: Callable[[], Awaitable[Answer]],
    settings: RetrySettings,
    *,
    sleep: Callable[[float], Awaitable[None]],
    chance: Callable[[], float],
    on_retry: OnRetry,
) -> Answer:
    """What `call` gives, asked again after errors that are worth it; `on_retry` is awaited before each pause.

    Raises the `ProviderError` of the last attempt, as it came. All other errors pass at once.
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


def _backoff(attempt: int, settings: RetrySettings) -> float:
    try:
        delay = settings.initial_delay * settings.multiplier ** (attempt - 2)
    except OverflowError:
        return settings.max_delay
    return min(delay, settings.max_delay)


def _requested_delay(error: ProviderError) -> float:
    return (error.retry_after or 0.0) if isinstance(error, RateLimitedError) else 0.0
