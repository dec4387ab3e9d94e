"""Whether a run that failed is tried again, and when. Source: run API, section 2 (`retry_policy`)."""

from dataclasses import dataclass

from agent_mux.assembler import Verdict
from agent_mux.sdk.options import RetryPolicy


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
