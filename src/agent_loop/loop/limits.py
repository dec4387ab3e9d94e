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
    """Counts turns, tokens, cost and time of one loop, and compares those of the run with the limits."""

    def __init__(
        self, limits: ExecutionLimits, monotonic: Callable[[], float], earlier: "ExecutionTracker | None" = None
    ) -> None:
        """`earlier` is the tracker of the loop before in the same run, whose counts the limits include."""
        self._limits = limits
        self._monotonic = monotonic
        self._earlier = earlier
        self._started_at: float = monotonic() if earlier is None else earlier._started_at  # noqa: SLF001  # same class
        self.turns = 0
        self.usage = Usage()

    @property
    def run_turns(self) -> int:
        """The turns of the run, with those of earlier loops."""
        return self.turns if self._earlier is None else self._earlier.run_turns + self.turns

    @property
    def run_usage(self) -> Usage:
        """The usage of the run, with that of earlier loops."""
        return self.usage if self._earlier is None else self._earlier.run_usage + self.usage

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

    def rest(self) -> ExecutionLimits:
        """Return what is left of the limits that the run shares with its sub-agents: tokens, time and cost."""
        limits, usage = self._limits, self.run_usage
        tokens, cost = usage.total_tokens, usage.cost_usd or 0.0
        return ExecutionLimits(
            max_turns=None,
            max_total_tokens=None if limits.max_total_tokens is None else max(limits.max_total_tokens - tokens, 0),
            max_duration=None if limits.max_duration is None else self.remaining_seconds(),
            max_cost_usd=None if limits.max_cost_usd is None else max(limits.max_cost_usd - cost, 0.0),
        )

    def reached(self) -> ReachedLimit | None:
        """Return the first limit that does not allow another turn; None if all do."""
        limits, turns, usage = self._limits, self.run_turns, self.run_usage
        if limits.max_turns is not None and turns >= limits.max_turns:
            return ReachedLimit("turns", f"{turns} of {limits.max_turns} turns were used")
        tokens = usage.total_tokens
        if limits.max_total_tokens is not None and tokens >= limits.max_total_tokens:
            return ReachedLimit("tokens", f"{tokens} of {limits.max_total_tokens} tokens were used")
        cost = usage.cost_usd
        if limits.max_cost_usd is not None and cost is not None and cost >= limits.max_cost_usd:
            return ReachedLimit("cost", f"{cost:.4f} of {limits.max_cost_usd} USD were spent")
        return self.out_of_time() if self.remaining_seconds() <= 0 else None

    def out_of_time(self) -> ReachedLimit:
        """Return the time limit as reached."""
        return ReachedLimit("duration", f"the time limit of {self._limits.max_duration} seconds was reached")


def tightest(one: ExecutionLimits, other: ExecutionLimits) -> ExecutionLimits:
    """Return the smaller of each limit."""
    return ExecutionLimits(
        **{
            name: min(
                (value for value in (getattr(one, name), getattr(other, name)) if value is not None), default=None
            )
            for name in ExecutionLimits.__slots__
        }
    )
