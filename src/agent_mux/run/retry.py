"""Whether a run that failed is tried again, and when. Source: run API, section 2 (`retry_policy`)."""

import random
from collections.abc import Callable
from dataclasses import dataclass

from agent_mux.assembler import Verdict
from agent_mux.errors import ErrorCode

RETRYABLE: frozenset[ErrorCode] = frozenset({"RATE_LIMITED", "AGENT_CRASH", "TIMEOUT"})


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """How often, how soon and for what. Each attempt is a new process; the handle stays the same."""

    max_attempts: int = 3
    """The first one included."""
    base_delay: float = 1.0
    """Seconds before the second attempt; each further one waits twice as long."""
    max_delay: float = 30.0
    """Seconds at most, before the jitter."""
    jitter: float = 0.1
    """Up to this part of the delay is added, by chance, so that many runs do not come back at once."""
    retry_on: frozenset[ErrorCode] = RETRYABLE

    def delay_after(self, attempt: int, chance: Callable[[], float] = random.random) -> float:
        """Seconds between the attempt with this number (from 1) and the next."""
        return min(self.base_delay * 2.0 ** (attempt - 1), self.max_delay) * (1 + self.jitter * chance())


@dataclass(frozen=True, slots=True)
class Retry:
    """Another attempt is to be made."""

    attempt: int
    """The number of the one that failed, from 1."""
    max_attempts: int
    reason: str
    delay: float
    """Seconds."""


class Attempts:
    """Counts the attempts of one run."""

    def __init__(self, policy: RetryPolicy | None) -> None:
        self._policy = policy
        self._made = 1

    def after(self, verdict: Verdict) -> Retry | None:
        """What follows a verdict: another attempt, or nothing."""
        policy, failure = self._policy, verdict.failure
        if policy is None or failure is None or verdict.exit_reason not in _OF_THE_AGENT:
            return None
        if failure.code not in policy.retry_on or self._made >= policy.max_attempts:
            return None
        told = (failure.retry_after_ms or 0) / 1000
        retry = Retry(self._made, policy.max_attempts, failure.message, max(policy.delay_after(self._made), told))
        self._made += 1
        return retry


_OF_THE_AGENT = frozenset({"failed", "crashed", "killed", "truncated"})
"""Not what somebody wanted: an abort, an interruption, a time-out, a limit."""
