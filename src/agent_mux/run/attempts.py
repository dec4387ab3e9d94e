"""The attempts of a run: after a failure, whether, when and with which agent it starts again.

See docs/spec/run-api.md, sections 2.6 (retries) and 2.8 (exhausted quotas).
"""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from agent_mux.assembler import Verdict
from agent_mux.events import QuotaWindow
from agent_mux.sdk.facts import Failure
from agent_mux.sdk.options import RetryPolicy

if TYPE_CHECKING:
    from agent_mux.run.plan import RunPlan

_RETRYABLE = frozenset({"failed", "crashed", "killed", "truncated"})
"""Exit reasons caused by the agent; not an abort, an interruption, a timeout or a limit."""
MIN_WAIT = 1.0  # seconds; a provider that names a reset in the past would otherwise be asked without a pause
_MARGIN = 1.0  # seconds after a reset, because the clocks of the provider and of this machine differ


class NextAttempt(msgspec.Struct, frozen=True, kw_only=True):
    """A decision to make another attempt."""

    attempt: int
    """Number of the attempt that failed, from 1."""
    max_attempts: int
    """Maximum number of attempts; 0 if it is not a retry of the policy, so that no number is known."""
    reason: str
    delay: float
    """Seconds until the next attempt."""
    plan: "RunPlan | None" = None
    """The plan of the next attempt, if another agent or model makes it."""


class AttemptCounter:
    """Counts the attempts of one run and decides about the next."""

    def __init__(
        self,
        policy: RetryPolicy | None,
        *,
        wait_for_quota: float | None = None,
        fallbacks: "Sequence[RunPlan]" = (),
    ) -> None:
        """Read the options.

        Args:
            policy: When to repeat an attempt; None: never.
            wait_for_quota: The most seconds to wait for quotas to reset, in all; 0: no limit; None: do not wait.
            fallbacks: The plans for a run that is refused because of a rate limit, in order.
        """
        self._policy = policy
        self._wants_to_wait = wait_for_quota is not None
        self._wait_left = math.inf if wait_for_quota == 0 else (wait_for_quota or 0.0)
        self._waited_for: float | None = None
        """The reset that was waited for last, in seconds since the epoch."""
        self._fallbacks = list(fallbacks)
        self.note: str | None = None
        self._attempt = 1
        self._retries = 1
        """Number of attempts that count for the policy: those of the current agent, without waits for a reset."""

    @property
    def may_continue(self) -> bool:
        """Whether any failure can be followed by another attempt."""
        return self._policy is not None or self._wait_left > 0 or bool(self._fallbacks)

    def next(self, verdict: Verdict, quota: Sequence[QuotaWindow], now: float) -> NextAttempt | None:
        """Return the next attempt after this verdict; None if the run ends with it.

        Args:
            verdict: How the attempt ended.
            quota: The provider's quota, as last reported.
            now: Seconds since the epoch.
        """
        failure = verdict.failure
        if failure is None or verdict.exit_reason not in _RETRYABLE:
            return None
        if failure.code != "RATE_LIMITED":
            following = self._retry(failure)
        else:
            wait = seconds_to_reset(failure, quota, now)
            following = self._wait(failure, quota, wait) or self._retry(failure) or self._fall_back(failure)
            if self._wants_to_wait and (following is None or following.plan is not None):
                self.note = _why_not_waiting(wait, self._wait_left)
        if following is not None:
            self._attempt += 1
        return following

    def take_note(self) -> str | None:
        """Return once why the run does not wait for the quota; None if there is nothing to report."""
        note, self.note = self.note, None
        return note

    def _wait(self, failure: Failure, quota: Sequence[QuotaWindow], wait: float | None) -> NextAttempt | None:
        reset = last_reset(quota)
        if wait is None or wait > self._wait_left or (reset is not None and reset == self._waited_for):
            return None
        self._waited_for = reset
        self._wait_left -= wait
        return NextAttempt(attempt=self._attempt, max_attempts=0, reason=failure.message, delay=wait)

    def _retry(self, failure: Failure) -> NextAttempt | None:
        policy = self._policy
        if policy is None or failure.code not in policy.retry_on or self._retries >= policy.max_attempts:
            return None
        requested = (failure.retry_after_ms or 0) / 1000
        if self._fallbacks and failure.code == "RATE_LIMITED" and requested > policy.max_delay:
            return None  # another agent can begin at once
        delay = max(policy.delay_after(self._retries), requested)
        self._retries += 1
        return NextAttempt(attempt=self._attempt, max_attempts=policy.max_attempts, reason=failure.message, delay=delay)

    def _fall_back(self, failure: Failure) -> NextAttempt | None:
        if not self._fallbacks:
            return None
        self._retries = 1
        plan = self._fallbacks.pop(0)
        return NextAttempt(attempt=self._attempt, max_attempts=0, reason=failure.message, delay=0.0, plan=plan)


def last_reset(quota: Sequence[QuotaWindow]) -> float | None:
    """Return when the last exhausted window resets, in seconds since the epoch; None if that is unknown."""
    return max((one.resets_at / 1000 for one in quota if one.is_exhausted and one.resets_at is not None), default=None)


def seconds_to_reset(failure: Failure, quota: Sequence[QuotaWindow], now: float) -> float | None:
    """Return the seconds until the provider answers again: until the last exhausted window resets.

    Without such a window it is the delay that the provider asked for; None if it named neither.
    """
    reset = last_reset(quota)
    if reset is not None:
        return max(reset - now + _MARGIN, MIN_WAIT)
    return None if failure.retry_after_ms is None else max(failure.retry_after_ms / 1000, MIN_WAIT)


def _why_not_waiting(wait: float | None, wait_left: float) -> str:
    if wait is None:
        return "this run does not wait for the quota: the provider did not report when it resets"
    if wait <= wait_left:
        return "this run does not wait for the quota again: the provider still refuses after its reset"
    return f"this run does not wait for the quota: it resets in {wait:.0f} s, more than wait_for_quota allows"
