"""Limits of a run, which stop it when exceeded, and retries of a run that failed.

A run can exceed a limit by what was in progress when the limit was reached: most agents report tokens at the end of a
model call, and some report cost at the end of a turn. See docs/spec/run-api.md, section 2 (`retry_policy` for retries).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from agent_mux.assembler import Cause, Verdict
from agent_mux.events import (
    AgentEvent,
    CostEvent,
    DebugEvent,
    LogEvent,
    RateLimitedEvent,
    RetryEvent,
    StepEndEvent,
    StepStartEvent,
    TokenUsageEvent,
)
from agent_mux.sdk.options import RetryPolicy, RunOptions

_BOOKKEEPING = (
    StepStartEvent, StepEndEvent, TokenUsageEvent, CostEvent, DebugEvent, LogEvent, RetryEvent, RateLimitedEvent,
)  # fmt: skip
"""Events of a model call that answers with nothing."""
_RETRYABLE = frozenset({"failed", "crashed", "killed", "truncated"})
"""Exit reasons caused by the agent; not an abort, an interruption, a timeout or a limit."""


class ExceededLimit(NamedTuple):
    """A limit that was exceeded, as the cause for stopping the run."""

    cause: Cause
    message: str = ""


class Budget:
    """Compares the events of a run with its limits."""

    def __init__(self, options: RunOptions, *, agent_counts_turns: bool) -> None:
        """Read the limits. `agent_counts_turns`: the agent was given `max_turns` and enforces it itself."""
        self._model_calls_left = None if agent_counts_turns else options.max_model_calls
        self._max_cost = options.max_cost_usd
        self._max_tokens = options.max_tokens_total
        self._tokens = 0
        self._is_unpriced = False
        self._inactivity = options.inactivity_timeout * 1000 if options.inactivity_timeout else None
        self._empty_calls = 0
        """Number of consecutive model calls that answered with nothing."""
        self._is_call_empty = False
        self._content_at = 0
        """Time of the last event that was more than bookkeeping."""

    @property
    def is_set(self) -> bool:
        """Whether the run has any limit."""
        limits = (self._max_cost, self._max_tokens, self._model_calls_left, self._inactivity)
        return any(limit is not None for limit in limits)

    def observe(self, events: Sequence[AgentEvent]) -> ExceededLimit | None:
        """Count these events. Returns the first limit that is exceeded."""
        for event in events:
            exceeded = None
            if isinstance(event, CostEvent):
                exceeded = self._check_cost(event)
            elif isinstance(event, TokenUsageEvent):
                exceeded = self._count_usage(event)
            elif isinstance(event, StepStartEvent):
                exceeded = self._count_step(event)
            exceeded = exceeded or self._measure_silence(event)
            if exceeded is not None:
                return exceeded
        return None

    def take_warning(self) -> str | None:
        """Return once why a limit cannot be enforced; None if all can."""
        if not self._is_unpriced:
            return None
        self._is_unpriced, self._max_cost = False, None
        return "max_cost_usd cannot be enforced: the agent reports no cost, and the prices of its model are unknown"

    def _count_step(self, event: StepStartEvent) -> ExceededLimit | None:
        if self._model_calls_left is None or event.subagent_id is not None:
            return None
        self._model_calls_left -= 1
        return ExceededLimit("turn_limit") if self._model_calls_left < 0 else None

    def _measure_silence(self, event: AgentEvent) -> ExceededLimit | None:
        """Count model calls that answer with nothing as silence, although the agent prints lines about them."""
        if self._inactivity is None or event.subagent_id is not None:
            return None
        if not isinstance(event, _BOOKKEEPING):
            self._content_at, self._empty_calls, self._is_call_empty = event.timestamp, 0, False
        elif isinstance(event, StepStartEvent):
            self._is_call_empty = True
        elif isinstance(event, StepEndEvent) and self._is_call_empty:
            self._empty_calls += 1
            if self._empty_calls > 1 and event.timestamp - self._content_at >= self._inactivity:
                return ExceededLimit("inactivity")
        return None

    def _check_cost(self, event: CostEvent) -> ExceededLimit | None:
        cost = event.cost
        if self._max_cost is None:
            return None
        self._is_unpriced = cost.source == "unknown"
        if cost.total_usd <= self._max_cost:
            return None
        message = f"the run cost {cost.total_usd:.4f} USD, more than max_cost_usd={self._max_cost:g}"
        return ExceededLimit("budget", message)

    def _count_usage(self, event: TokenUsageEvent) -> ExceededLimit | None:
        self._tokens += event.input_tokens + event.output_tokens + (event.cached_tokens or 0)
        if self._max_tokens is None or self._tokens <= self._max_tokens:
            return None
        message = f"the run used {self._tokens} tokens, more than max_tokens_total={self._max_tokens}"
        return ExceededLimit("budget", message)


@dataclass(frozen=True, slots=True)
class Retry:
    """A decision to make another attempt."""

    attempt: int
    """Number of the attempt that failed, from 1."""
    max_attempts: int
    reason: str
    delay: float
    """Seconds until the next attempt."""


class AttemptCounter:
    """Counts the attempts of one run and decides about the next."""

    def __init__(self, policy: RetryPolicy | None) -> None:
        self._policy = policy
        self._attempt = 1

    def next_retry(self, verdict: Verdict) -> Retry | None:
        """Return the next attempt after this verdict; None if the run ends with it."""
        policy, failure = self._policy, verdict.failure
        if policy is None or failure is None or verdict.exit_reason not in _RETRYABLE:
            return None
        if failure.code not in policy.retry_on or self._attempt >= policy.max_attempts:
            return None
        requested = (failure.retry_after_ms or 0) / 1000
        delay = max(policy.delay_after(self._attempt), requested)
        retry = Retry(self._attempt, policy.max_attempts, failure.message, delay)
        self._attempt += 1
        return retry
