"""What a run may use: it is stopped when what was seen passes that. Source: run API, section 2.

A limit can be passed by what was on its way when it was reached: most agents tell tokens when a model call is over, and
some what they cost when a turn is.


Whether a run that failed is tried again, and when. Source: run API, section 2 (`retry_policy`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from agent_mux.assembler import Cause, Verdict
from agent_mux.events import AgentEvent, CostEvent, StepStartEvent, TokenUsageEvent
from agent_mux.sdk.options import RetryPolicy, RunOptions


class ExceededLimit(NamedTuple):
    """A limit that is passed."""

    cause: Cause
    message: str = ""


class Budget:
    """Watches the events of a run."""

    def __init__(self, options: RunOptions, *, agent_counts_turns: bool) -> None:
        """An agent that counts its model calls itself is told `max_turns`, and keeps it."""
        self._turns_left = None if agent_counts_turns else options.max_turns
        self._max_cost = options.max_cost_usd
        self._max_tokens = options.max_tokens_total
        self._tokens = 0
        self._is_unpriced = False

    @property
    def is_set(self) -> bool:
        """There is a limit."""
        return self._max_cost is not None or self._max_tokens is not None or self._turns_left is not None

    def observe(self, events: Sequence[AgentEvent]) -> ExceededLimit | None:
        """Take note of events. Returns what is spent, once that is too much."""
        for event in events:
            passed = None
            if isinstance(event, CostEvent):
                passed = self._cost(event)
            elif isinstance(event, TokenUsageEvent):
                passed = self._usage(event)
            elif isinstance(event, StepStartEvent):
                passed = self._step(event)
            if passed is not None:
                return passed
        return None

    def unkept(self) -> str | None:
        """Once: why a limit cannot be kept, if it cannot."""
        if not self._is_unpriced:
            return None
        self._is_unpriced, self._max_cost = False, None
        return "max_cost_usd cannot be kept: the agent tells no cost, and nobody knows the prices of its model"

    def _step(self, event: StepStartEvent) -> ExceededLimit | None:
        if self._turns_left is None or event.subagent_id is not None:
            return None
        self._turns_left -= 1
        return ExceededLimit("turn_limit") if self._turns_left < 0 else None

    def _cost(self, event: CostEvent) -> ExceededLimit | None:
        cost = event.cost
        if self._max_cost is None:
            return None
        self._is_unpriced = cost.source == "unknown"
        if cost.total_usd <= self._max_cost:
            return None
        return ExceededLimit(
            "budget", f"the run cost {cost.total_usd:.4f} USD, more than max_cost_usd={self._max_cost:g}"
        )

    def _usage(self, event: TokenUsageEvent) -> ExceededLimit | None:
        self._tokens += event.input_tokens + event.output_tokens + (event.cached_tokens or 0)
        if self._max_tokens is None or self._tokens <= self._max_tokens:
            return None
        return ExceededLimit(
            "budget", f"the run used {self._tokens} tokens, more than max_tokens_total={self._max_tokens}"
        )


@dataclass(frozen=True, slots=True)
class Retry:
    """Another attempt is to be made."""

    attempt: int
    """The number of the one that failed, from 1."""
    max_attempts: int
    reason: str
    delay: float
    """Seconds."""


class AttemptCounter:
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
