"""Limits: what cannot be is refused, and the strictest counts."""

from pathlib import Path
from typing import Any

import pytest

from agent_mux.errors import AgentMuxError, ValidationError
from agent_mux.mcp_server.inheritance import Inherited
from agent_mux.mcp_server.limits import Limits, Spending
from agent_mux.settings.allowed_directories import AllowedDirectories


def limits(tmp_path: Path, **given: Any) -> Limits:
    return Limits(roots=AllowedDirectories([tmp_path]), **given)


def test_the_defaults_are_careful(tmp_path: Path) -> None:
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
def test_what_cannot_be_is_refused(tmp_path: Path, bad: dict[str, Any]) -> None:
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
        (Inherited(), 0, 2, 4.0, False),
        (Inherited(1, 5, 9.0), 1, 2, 4.0, False),
        (Inherited(1, 1, 0.5), 1, 1, 0.5, True),
        (Inherited(7), 7, 2, 4.0, True),
    ],
)
def test_the_strictest_counts(
    tmp_path: Path, above: Inherited, depth: int, max_depth: int, cost: float, is_deepest: bool
) -> None:
    own = limits(tmp_path, max_cost_usd=4.0).under(above)
    assert (own.depth, own.max_depth, own.max_cost_usd, own.is_deepest) == (depth, max_depth, cost, is_deepest)


def test_depth_zero_is_no_delegation(tmp_path: Path) -> None:
    assert limits(tmp_path, max_depth=0).is_deepest


def test_those_below_are_told(tmp_path: Path) -> None:
    own = limits(tmp_path).under(Inherited(1, 6))
    assert own.below(None) == Inherited(2, 2, None)
    assert own.below(0.5) == Inherited(2, 2, 0.5)


def test_spending_is_the_last_word_of_each_run() -> None:
    spending = Spending(1.0)
    assert (spending.rest, spending.is_spent, spending.is_passed) == (1.0, False, False)
    for run, usd in (("a", 0.25), ("a", 0.5), ("b", 0.25), ("a", 0.125)):
        spending.see(run, usd)
    assert (spending.total, spending.rest) == (0.75, 0.25)
    spending.see("b", 0.5)
    assert (spending.rest, spending.is_spent, spending.is_passed) == (0.0, True, False)
    spending.see("c", 0.5)
    assert (spending.rest, spending.is_passed) == (0.0, True)


def test_without_a_limit_nothing_is_spent() -> None:
    spending = Spending(None)
    spending.see("a", 1e6)
    assert (spending.rest, spending.is_spent, spending.is_passed) == (None, False, False)
