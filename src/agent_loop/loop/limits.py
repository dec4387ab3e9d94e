"""Tracking of turns, tokens, cost and time of a run against its limits."""

from collections.abc import Callable
from typing import NamedTuple

from agent_loop.behavior import ExecutionLimits
from agent_loop.events import LoopLimit
from agent_loop.usage import Usage


class ReachedLimit(NamedTuple):
    """A limit that the run reached, and a sentence that states it."""

    limit: LoopLimit
    reason: str


class ExecutionTracker:
    """Counts turns, tokens, cost and time of one run and compares them with the limits."""

    def __init__(self, limits: ExecutionLimits, monotonic: Callable[[], float]) -> None:
        self._limits = limits
        self._monotonic = monotonic
        self._started_at = monotonic()
        self.turns = 0
        self.usage = Usage()

    def add_turn(self) -> None:
        """Count a turn that starts."""
        self.turns += 1

    def add_usage(self, usage: Usage) -> None:
        """Add the usage of a model call, including calls outside of turns, such as summaries."""
        self.usage += usage

    def remaining_seconds(self) -> float:
        """Return the seconds until the time limit; infinite without one."""
        limit = self._limits.max_duration
        return float("inf") if limit is None else max(0.0, limit - (self._monotonic() - self._started_at))

    def reached(self) -> ReachedLimit | None:
        """Return the first limit that does not allow another turn; None if all do."""
        limits = self._limits
        if limits.max_turns is not None and self.turns >= limits.max_turns:
            return ReachedLimit("turns", f"{self.turns} of {limits.max_turns} turns were used")
        tokens = self.usage.total_tokens
        if limits.max_total_tokens is not None and tokens >= limits.max_total_tokens:
            return ReachedLimit("tokens", f"{tokens} of {limits.max_total_tokens} tokens were used")
        cost = self.usage.cost_usd
        if limits.max_cost_usd is not None and cost is not None and cost >= limits.max_cost_usd:
            return ReachedLimit("cost", f"{cost:.4f} of {limits.max_cost_usd} USD were spent")
        return self.out_of_time() if self.remaining_seconds() <= 0 else None

    def out_of_time(self) -> ReachedLimit:
        """Return the time limit as reached."""
        return ReachedLimit("duration", f"the time limit of {self._limits.max_duration} seconds was reached")
