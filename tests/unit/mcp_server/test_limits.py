"""Limits of a delegation server: invalid ones are refused, and the strictest ones apply."""

from pathlib import Path
from typing import Any

import pytest

from agent_mux.errors import AgentMuxError, ValidationError
from agent_mux.mcp_server.inheritance import InheritedLimits
from agent_mux.mcp_server.limits import DelegationBudget, DelegationLimits
from agent_mux.settings.allowed_directories import AllowedDirectories


def limits(tmp_path: Path, **given: Any) -> DelegationLimits:
    return DelegationLimits(roots=AllowedDirectories([tmp_path]), **given)


def test_the_defaults_are_strict(tmp_path: Path) -> None:
    own = limits(tmp_path)
    assert (own.approvals, own.modes, own.max_depth, own.is_deepest) == ("deny", ("deny",), 2, False)
    assert own.approval_mode(None) == "deny"


@pytest.mark.parametrize(
    "bad",
    [
        {"approvals": "all"}, {"max_depth": -1}, {"max_cost_usd": -1}, {"max_cost_usd": float("nan")}, {"max_runs": 0},
        {"max_runs_total": 0}, {"timeout": 0}, {"timeout": float("inf")},
    ],
)  # fmt: skip
def test_invalid_limits_are_refused(tmp_path: Path, bad: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match=next(iter(bad))):
        limits(tmp_path, **bad)


def test_a_run_may_ask_for_less_and_not_for_more(tmp_path: Path) -> None:
    own = limits(tmp_path, approvals="prompt")
    assert [own.approval_mode(mode) for mode in (None, "deny", "prompt")] == ["prompt", "deny", "prompt"]  # type: ignore[arg-type]
    with pytest.raises(AgentMuxError, match="use deny or prompt"):
        own.approval_mode("yolo")


@pytest.mark.parametrize(
    ("above", "depth", "max_depth", "cost", "is_deepest"),
    [
        (InheritedLimits(), 0, 2, 4.0, False),
        (InheritedLimits(1, 5, 9.0), 1, 2, 4.0, False),
        (InheritedLimits(1, 1, 0.5), 1, 1, 0.5, True),
        (InheritedLimits(7), 7, 2, 4.0, True),
    ],
)
def test_the_strictest_limit_applies(
    tmp_path: Path, above: InheritedLimits, depth: int, max_depth: int, cost: float, is_deepest: bool
) -> None:
    own = limits(tmp_path, max_cost_usd=4.0).restricted_by(above)
    assert (own.depth, own.max_depth, own.max_cost_usd, own.is_deepest) == (depth, max_depth, cost, is_deepest)


def test_a_maximum_depth_of_zero_prevents_delegation(tmp_path: Path) -> None:
    assert limits(tmp_path, max_depth=0).is_deepest


def test_runs_inherit_depth_and_remaining_budget(tmp_path: Path) -> None:
    own = limits(tmp_path).restricted_by(InheritedLimits(1, 6))
    assert own.inherited_by_runs(None) == InheritedLimits(2, 2, None)
    assert own.inherited_by_runs(0.5) == InheritedLimits(2, 2, 0.5)


def test_spending_is_the_highest_reported_cost_of_each_run() -> None:
    budget = DelegationBudget(1.0)
    assert (budget.remaining, budget.is_exhausted, budget.is_exceeded) == (1.0, False, False)
    for run, usd in (("a", 0.25), ("a", 0.5), ("b", 0.25), ("a", 0.125)):
        budget.record(run, usd)
    assert (budget.total, budget.remaining) == (0.75, 0.25)
    budget.record("b", 0.5)
    assert (budget.remaining, budget.is_exhausted, budget.is_exceeded) == (0.0, True, False)
    budget.record("c", 0.5)
    assert (budget.remaining, budget.is_exceeded) == (0.0, True)


def test_without_a_limit_nothing_is_spent() -> None:
    budget = DelegationBudget(None)
    budget.record("a", 1e6)
    assert (budget.remaining, budget.is_exhausted, budget.is_exceeded) == (None, False, False)
