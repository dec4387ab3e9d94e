"""Candidates over all their trials: pass rate with its interval, and medians of what is known."""

import math
from collections.abc import Iterable, Sequence
from statistics import median

import msgspec

from agent_evaluation.strategies.trials import TrialView

Z_95 = 1.959963984540054
"""Standard normal quantile of a two-sided 95% interval."""


class CandidateSummary(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The trials of one candidate. Medians are of the scored trials whose value is known; None: none is."""

    candidate: str
    trials: int
    scored: int
    passed: int
    pass_rate: float | None
    """`passed / scored`; None without scored trials."""
    interval: tuple[float, float] | None
    """95% interval of the pass rate, by Wilson."""
    median_cost_usd: float | None
    median_tokens: float | None
    median_duration_ms: float | None
    unknown_costs: int
    """Number of scored trials whose cost is unknown."""


def summarize(trials: Iterable[TrialView]) -> tuple[CandidateSummary, ...]:
    """Return one summary per candidate: the highest pass rate first, then the lowest median cost, then by name."""
    groups: dict[str, list[TrialView]] = {}
    for trial in trials:
        groups.setdefault(trial.candidate, []).append(trial)
    summaries = [_summarize(name, group) for name, group in groups.items()]
    return tuple(
        sorted(
            summaries,
            key=lambda one: (
                one.pass_rate is None,
                -(one.pass_rate or 0),
                one.median_cost_usd is None,
                one.median_cost_usd or 0,
                one.candidate,
            ),
        )
    )


def wilson_interval(passed: int, total: int, z: float = Z_95) -> tuple[float, float]:
    """Return the Wilson score interval of a proportion; (0, 1) without trials."""
    if not total:
        return 0.0, 1.0
    rate, share = passed / total, z * z / total
    middle = (rate + share / 2) / (1 + share)
    half = z * math.sqrt(rate * (1 - rate) / total + share / (4 * total)) / (1 + share)
    return max(0.0, middle - half), min(1.0, middle + half)


def _summarize(name: str, group: Sequence[TrialView]) -> CandidateSummary:
    scored = [trial for trial in group if trial.outcome.is_scored]
    passed = sum(trial.outcome.verdict == "pass" for trial in scored)
    return CandidateSummary(
        candidate=name,
        trials=len(group),
        scored=len(scored),
        passed=passed,
        pass_rate=passed / len(scored) if scored else None,
        interval=wilson_interval(passed, len(scored)) if scored else None,
        median_cost_usd=_median(trial.cost_usd for trial in scored),
        median_tokens=_median(trial.tokens for trial in scored),
        median_duration_ms=_median(trial.duration_ms for trial in scored),
        unknown_costs=sum(trial.cost_usd is None for trial in scored),
    )


def _median(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(median(known)) if known else None
