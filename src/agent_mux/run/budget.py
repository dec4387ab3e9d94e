"""Limits of a run, which stop it when exceeded.

A run can exceed a limit by what was in progress when the limit was reached: most agents report tokens at the end of a
model call, and some report cost at the end of a turn. See docs/spec/run-api.md, section 2.4.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from agent_mux.assembler import Cause
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
from agent_mux.sdk.options import RunOptions

_BOOKKEEPING = (
    StepStartEvent, StepEndEvent, TokenUsageEvent, CostEvent, DebugEvent, LogEvent, RetryEvent, RateLimitedEvent,
)  # fmt: skip
"""Events of a model call that answers with nothing."""


class ExceededLimit(NamedTuple):
    """A limit that was exceeded, as the cause for stopping the run."""

    cause: Cause
    message: str = ""


class Budget:
    """Compares the events of a run with its limits."""

    def __init__(
        self, options: RunOptions, *, agent_counts_turns: bool, limits: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        """Read the limits.

        Args:
            options: The options of the run.
            agent_counts_turns: The agent was given `max_model_calls` and enforces it itself.
            limits: The value and the source of each limit, by the name of its option.
        """
        self._limits = limits
        self._max_model_calls = options.max_model_calls
        self.follow_agent(counts_turns=agent_counts_turns)
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

    def follow_agent(self, *, counts_turns: bool) -> None:
        """Begin to count the model calls of an agent. `counts_turns`: it enforces their limit itself."""
        self._model_calls_left = None if counts_turns else self._max_model_calls

    @property
    def is_set(self) -> bool:
        """Whether the run has any limit."""
        limits = (self._max_cost, self._max_tokens, self._max_model_calls, self._inactivity)
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
        limit = self._limits.get("max_cost_usd", f"${self._max_cost:g} (max_cost_usd)")
        message = f"the run cost ${cost.total_usd:.4f}, more than {limit}"
        return ExceededLimit("budget", message)

    def _count_usage(self, event: TokenUsageEvent) -> ExceededLimit | None:
        self._tokens += event.input_tokens + event.output_tokens + (event.cached_tokens or 0)
        if self._max_tokens is None or self._tokens <= self._max_tokens:
            return None
        limit = self._limits.get("max_tokens_total", f"{self._max_tokens} (max_tokens_total)")
        message = f"the run used {self._tokens} tokens, more than {limit}"
        return ExceededLimit("budget", message)
