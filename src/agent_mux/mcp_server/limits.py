"""What the agents that delegate may do at most: how deep, how many, how long, for how much, where, and with whom.

The defaults are the careful ones: a delegate may do only what needs no permission, in the current directory.


What all runs of a server cost together.
"""

import math
from dataclasses import dataclass, replace
from typing import Any

from agent_mux.errors import AgentMuxError, FieldError, ValidationError
from agent_mux.mcp_server.inheritance import Inherited
from agent_mux.sdk.options import ApprovalMode
from agent_mux.settings.allowed_directories import AllowedDirectories

CAREFUL_FIRST: tuple[ApprovalMode, ...] = ("deny", "prompt", "yolo")
"""Approval modes, each allowing more than the one before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The limits of one server."""

    roots: AllowedDirectories
    agents: tuple[str, ...] = ()
    """Names; empty: all that are registered."""
    approvals: ApprovalMode = "deny"
    """The most that a run may be allowed, and what it is allowed where nobody says: `deny` refuses what the delegate
    asks for, `prompt` lets the delegating agent decide, `yolo` allows everything."""
    depth: int = 0
    """How many servers like this one are above."""
    max_depth: int = 2
    """Below this depth, runs can be started."""
    max_cost_usd: float | None = None
    """Of all runs together, in US dollars, as far as agents say what they cost or prices are known."""
    max_runs: int = 4
    """At a time."""
    max_runs_total: int = 50
    """In the life of the server."""
    timeout: float = 1800.0
    """Seconds, of each run."""

    def __post_init__(self) -> None:
        """Raises `ValidationError` with every bad field."""
        cost = self.max_cost_usd
        checks: list[tuple[str, Any, bool, str]] = [
            ("approvals", self.approvals, self.approvals in CAREFUL_FIRST, ", ".join(CAREFUL_FIRST)),
            ("max_depth", self.max_depth, self.max_depth >= 0, "a whole number >= 0"),
            ("max_cost_usd", cost, cost is None or 0 <= cost < math.inf, "US dollars, >= 0"),
            ("max_runs", self.max_runs, self.max_runs >= 1, "a whole number >= 1"),
            ("max_runs_total", self.max_runs_total, self.max_runs_total >= 1, "a whole number >= 1"),
            ("timeout", self.timeout, 0 < self.timeout < math.inf, "seconds, > 0"),
        ]
        bad = [FieldError(name, value, allowed) for name, value, fits, allowed in checks if not fits]
        if bad:
            raise ValidationError(bad)

    def under(self, above: Inherited) -> "Limits":
        """These, and what those above us say: the strictest counts."""
        own = Inherited(self.depth, self.max_depth, self.max_cost_usd).joined(above)
        assert own.max_depth is not None  # noqa: S101  # ours is not None
        return replace(self, depth=own.depth, max_depth=own.max_depth, max_cost_usd=own.max_cost_usd)

    def below(self, rest_usd: float | None) -> Inherited:
        """What the runs of this server are told."""
        return Inherited(self.depth + 1, self.max_depth, rest_usd)

    @property
    def is_deepest(self) -> bool:
        """Nothing can be started from here."""
        return self.depth >= self.max_depth

    @property
    def modes(self) -> tuple[ApprovalMode, ...]:
        """The approval modes that a run may have, the most careful first."""
        return CAREFUL_FIRST[: CAREFUL_FIRST.index(self.approvals) + 1]

    def approval_mode(self, wanted: ApprovalMode | None) -> ApprovalMode:
        """The mode of a run. Raises CAPABILITY_ERROR for more than is allowed."""
        if wanted is None:
            return self.approvals
        if wanted not in self.modes:
            most = f"approval mode {wanted!r} is more than this server allows; use {' or '.join(self.modes)}"
            raise AgentMuxError("CAPABILITY_ERROR", most)
        return wanted


class Spending:
    """Sums the last word of each run. Runs of which nobody knows the price count as nothing."""

    def __init__(self, limit_usd: float | None) -> None:
        self._limit = limit_usd
        self._by_run: dict[str, float] = {}

    def see(self, run_id: str, total_usd: float) -> None:
        """A run has cost so much so far, in US dollars."""
        self._by_run[run_id] = max(total_usd, self._by_run.get(run_id, 0.0))

    @property
    def total(self) -> float:
        """US dollars so far."""
        return sum(self._by_run.values())

    @property
    def rest(self) -> float | None:
        """US dollars that are left; None: there is no limit."""
        return None if self._limit is None else max(self._limit - self.total, 0.0)

    @property
    def is_spent(self) -> bool:
        """Nothing is left, though there is a limit."""
        return self._limit is not None and self.total >= self._limit

    @property
    def is_passed(self) -> bool:
        """More was spent than the limit."""
        return self._limit is not None and self.total > self._limit
