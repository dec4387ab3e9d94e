"""The limits of a delegation server: agents, directories, approvals, depth, number, time and cost of its runs.

The defaults are strict: a delegated run may only do what needs no permission, in the current directory.
"""

import math
from dataclasses import dataclass, replace
from typing import Any

from agent_mux.errors import AgentMuxError, FieldError, ValidationError
from agent_mux.mcp_server.inheritance import InheritedLimits
from agent_mux.sdk.checked import Checked
from agent_mux.sdk.options import ApprovalMode
from agent_mux.settings.allowed_directories import AllowedDirectories

STRICTEST_FIRST: tuple[ApprovalMode, ...] = ("deny", "prompt", "yolo")
"""The approval modes, ordered by how much they allow."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DelegationLimits(Checked):
    """The limits of one delegation server. Raises `ValidationError` with every invalid field."""

    roots: AllowedDirectories
    """The directories in which runs may work."""
    agents: tuple[str, ...] = ()
    """The names of the agents that may be started; empty: all registered agents."""
    approvals: ApprovalMode = "deny"
    """The most permissive approval mode of a run, which is also the default mode of runs.

    `deny` denies what the delegated agent requests, `prompt` lets the delegating agent decide, `yolo` allows all.
    """
    depth: int = 0
    """The number of delegation servers above this one."""
    max_depth: int = 2
    """The depth from which on no runs can be started."""
    max_cost_usd: float | None = None
    """The maximum cost of all runs together, in US dollars; None: unlimited. Runs of unknown cost do not count."""
    max_runs: int = 4
    """The maximum number of active runs."""
    max_runs_total: int = 50
    """The maximum number of runs that the server starts in its lifetime."""
    timeout: float = 1800.0
    """The maximum duration of each run, in seconds."""

    def check(self) -> None:
        """Raise `ValidationError` with every limit that is out of range."""
        cost = self.max_cost_usd
        checks: list[tuple[str, Any, bool, str]] = [
            ("approvals", self.approvals, self.approvals in STRICTEST_FIRST, ", ".join(STRICTEST_FIRST)),
            ("max_depth", self.max_depth, self.max_depth >= 0, "a whole number >= 0"),
            ("max_cost_usd", cost, cost is None or 0 <= cost < math.inf, "US dollars, >= 0"),
            ("max_runs", self.max_runs, self.max_runs >= 1, "a whole number >= 1"),
            ("max_runs_total", self.max_runs_total, self.max_runs_total >= 1, "a whole number >= 1"),
            ("timeout", self.timeout, 0 < self.timeout < math.inf, "seconds, > 0"),
        ]
        bad = [FieldError(name, value, allowed) for name, value, is_valid, allowed in checks if not is_valid]
        if bad:
            raise ValidationError(bad)

    def restricted_by(self, inherited: InheritedLimits) -> "DelegationLimits":
        """Return the stricter of these limits and the inherited ones."""
        merged = InheritedLimits(self.depth, self.max_depth, self.max_cost_usd).merge(inherited)
        assert merged.max_depth is not None  # noqa: S101  # ours is not None
        return replace(self, depth=merged.depth, max_depth=merged.max_depth, max_cost_usd=merged.max_cost_usd)

    def inherited_by_runs(self, remaining_usd: float | None) -> InheritedLimits:
        """Return the limits that a new run inherits. `remaining_usd`: what remains of the budget; None: unlimited."""
        return InheritedLimits(self.depth + 1, self.max_depth, remaining_usd)

    @property
    def is_deepest(self) -> bool:
        """Whether the maximum depth is reached, so that no runs can be started."""
        return self.depth >= self.max_depth

    @property
    def modes(self) -> tuple[ApprovalMode, ...]:
        """The approval modes that a run may have, the strictest first."""
        return STRICTEST_FIRST[: STRICTEST_FIRST.index(self.approvals) + 1]

    def approval_mode(self, requested: ApprovalMode | None) -> ApprovalMode:
        """Return the approval mode of a run. Raises CAPABILITY_ERROR for a mode that is not allowed."""
        if requested is None:
            return self.approvals
        if requested not in self.modes:
            excess = f"this server does not allow approval mode {requested!r}; use {' or '.join(self.modes)}"
            raise AgentMuxError("CAPABILITY_ERROR", excess)
        return requested


class DelegationBudget:
    """The budget of a server and the cost of its runs, in US dollars. Runs of unknown cost count as 0."""

    def __init__(self, limit_usd: float | None) -> None:
        self._limit = limit_usd
        self._by_run: dict[str, float] = {}

    def record(self, run_id: str, total_usd: float) -> None:
        """Record the total cost of a run so far. A lower amount than before is ignored."""
        self._by_run[run_id] = max(total_usd, self._by_run.get(run_id, 0.0))

    @property
    def total(self) -> float:
        """US dollars spent so far."""
        return sum(self._by_run.values())

    @property
    def remaining(self) -> float | None:
        """US dollars that may still be spent; None: unlimited."""
        return None if self._limit is None else max(self._limit - self.total, 0.0)

    @property
    def is_exhausted(self) -> bool:
        """Whether a limit exists and has been reached."""
        return self._limit is not None and self.total >= self._limit

    @property
    def is_exceeded(self) -> bool:
        """Whether a limit exists and has been exceeded."""
        return self._limit is not None and self.total > self._limit
