"""The strategies: each ranks eligible trials by one measure.

Checks decide first, whatever the strategy: if any trial was judged, only trials that passed can win. Without any judged
trial, the strategies with `needs_checks=False` select among the runs that completed. The order of the input never
matters; trials that a strategy does not distinguish are a tie, and the earlier in the plan ranks higher.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby

import msgspec

from agent_evaluation.strategies.trials import Selection, TrialView

Scores = Mapping[str, float]
"""Id of a trial to its score by a judge, 0 to 1: the share of comparisons that it wins, or is expected to win."""
_Key = tuple[float, ...]
_USABLE_CAUSES = frozenset({"completed", "no_change"})
"""How a run without checks must have ended to be selected."""
_TIE_BREAK = "the earlier in the plan wins"


class Measure(msgspec.Struct, frozen=True):
    """The value by which a trial is ranked: lower keys are better."""

    key: _Key
    text: str
    is_known: bool = True
    """Whether the value is known; a trial with an unknown value ranks last and never wins."""


class Strategy(msgspec.Struct, frozen=True, kw_only=True):
    """A strategy: the measure by which it ranks trials, and when it selects nothing."""

    name: str
    summary: str
    measure: Callable[[TrialView, Scores], Measure]
    needs_checks: bool = False
    """Whether it selects nothing if there are no checks at all."""
    is_single: bool = False
    """Whether it selects nothing among several trials."""


def select(strategy: str, trials: Sequence[TrialView], *, scores: Scores | None = None) -> Selection:
    """Select a trial.

    Args:
        strategy: A name in `STRATEGIES`.
        trials: All trials, in any order; their ids are unique.
        scores: What a judge prefers (`judging.win_rates`, `bradley_terry.expected_shares`), for `llm-judge` and
            `tests-then-judge`.

    Raises:
        ValueError: The strategy is unknown, or two trials have the same id.
    """
    if strategy not in STRATEGIES:
        raise ValueError(f"no strategy is named {strategy!r}; known: {', '.join(STRATEGIES)}")
    if len({trial.id for trial in trials}) < len(trials):
        raise ValueError("two trials have the same id; give each its own")
    chosen = STRATEGIES[strategy]
    eligible, excluded = _split(trials, chosen)
    measured = sorted(
        ((chosen.measure(trial, scores or {}), trial) for trial in eligible),
        key=lambda one: (not one[0].is_known, one[0].key, one[1].position, one[1].id),
    )
    groups = [
        tuple(trial.id for _, trial in group)
        for _, group in groupby(measured, key=lambda one: (one[0].is_known, one[0].key))
    ]
    winner, note = _winner(chosen, measured, groups, trials)
    return Selection(
        strategy=strategy,
        winner=winner,
        note=note,
        ranking=tuple(trial.id for _, trial in measured),
        ties=tuple(group for group in groups if len(group) > 1),
        reasons={trial.id: measure.text for measure, trial in measured},
        excluded=dict(sorted(excluded.items())),
    )


def _split(trials: Sequence[TrialView], strategy: Strategy) -> tuple[list[TrialView], dict[str, str]]:
    """Return the trials that can win, and for the others why they cannot."""
    has_checks = _has_checks(trials)
    eligible, excluded = [], {}
    for trial in trials:
        reason = _reason_to_exclude(trial, strategy, has_checks=has_checks)
        if reason:
            excluded[trial.id] = reason
        else:
            eligible.append(trial)
    return eligible, excluded


def _reason_to_exclude(trial: TrialView, strategy: Strategy, *, has_checks: bool) -> str:
    verdict, cause = trial.outcome.verdict, trial.outcome.cause
    if verdict == "pass":
        return ""
    detail = trial.outcome.detail
    if verdict == "undecided":
        return f"undecided: {detail or cause}"
    if verdict != "unjudged":
        return f"{verdict}: {cause} ({detail})" if detail else f"{verdict}: {cause}"
    if has_checks or strategy.needs_checks:
        return "unjudged: it has no checks"
    return "" if cause in _USABLE_CAUSES else f"unjudged, and its run did not complete: {cause}"


def _has_checks(trials: Sequence[TrialView]) -> bool:
    return any(trial.checks_total or trial.outcome.verdict in {"pass", "fail", "undecided"} for trial in trials)


def _winner(
    strategy: Strategy,
    measured: Sequence[tuple[Measure, TrialView]],
    groups: Sequence[tuple[str, ...]],
    trials: Sequence[TrialView],
) -> tuple[str | None, str]:
    if not measured:
        return None, _why_none(strategy, trials)
    measure, best = measured[0]
    if strategy.is_single and len(trials) > 1:
        return None, f"{strategy.name} selects nothing among several trials"
    if not measure.is_known:
        return None, f"{measure.text} for every trial that could win"
    if len(groups[0]) > 1:
        return best.id, f"{measure.text}; tie of {', '.join(groups[0])}: {_TIE_BREAK}"
    return best.id, measure.text


def _why_none(strategy: Strategy, trials: Sequence[TrialView]) -> str:
    if not trials:
        return "there are no trials"
    if _has_checks(trials):
        return "no trial passed its checks"
    if all(trial.outcome.verdict == "infra" for trial in trials):
        return "every trial was excluded"
    return "there are no checks" if strategy.needs_checks else "no run completed"


def _same(_: TrialView, __: Scores) -> Measure:
    return Measure((), "the only one")


def _first(trial: TrialView, _: Scores) -> Measure:
    return Measure((trial.position,), f"number {trial.position + 1} in the plan")


def _tokens(trial: TrialView, _: Scores) -> Measure:
    return _known(trial.tokens, "tokens")


def _most_tokens(trial: TrialView, _: Scores) -> Measure:
    found = _known(trial.tokens, "tokens")
    return Measure(tuple(-value for value in found.key), found.text, found.is_known)


def _cost(trial: TrialView, _: Scores) -> Measure:
    return _known(trial.cost_usd, "cost", "${:.4f}")


def _duration(trial: TrialView, _: Scores) -> Measure:
    seconds = None if trial.duration_ms is None else trial.duration_ms / 1000
    return _known(seconds, "duration", "{:.1f} s")


def _checks(trial: TrialView, _: Scores) -> Measure:
    cost, duration = _cost(trial, {}), _duration(trial, {})
    key = (-trial.checks_passed, not cost.is_known, *cost.key, not duration.is_known, *duration.key)
    return Measure(key, f"{trial.checks_passed} of {trial.checks_total} checks; {cost.text}; {duration.text}")


def _score(trial: TrialView, scores: Scores) -> Measure:
    score = scores.get(trial.id)
    if score is None:
        return Measure((0.0,), "not compared by the judge", is_known=False)
    return Measure((-score,), f"the judge prefers it in {score:.0%} of comparisons")


def _passed_then_score(trial: TrialView, scores: Scores) -> Measure:
    """Rank trials that passed by the judge; where it compared none of them, they are a tie."""
    if not scores:
        return Measure((), "passed its checks; not compared by a judge")
    return _score(trial, scores)


def _known(value: float | None, name: str, template: str = "{:,}") -> Measure:
    if value is None or not math.isfinite(value):
        return Measure((0.0,), f"{name} unknown", is_known=False)
    return Measure((float(value),), f"{name} {template.format(value)}")


STRATEGIES: Mapping[str, Strategy] = {
    one.name: one
    for one in (
        Strategy(name="transparent", summary="the only trial; nothing among several", measure=_same, is_single=True),
        Strategy(name="pick-first", summary="the first in the plan", measure=_first),
        Strategy(name="token-efficient", summary="the fewest tokens", measure=_tokens),
        Strategy(name="elaborate", summary="the most tokens", measure=_most_tokens),
        Strategy(name="cheapest", summary="the lowest cost", measure=_cost),
        Strategy(name="fastest", summary="the shortest time", measure=_duration),
        Strategy(
            name="checks-first", summary="the most checks, then cost, then time", measure=_checks, needs_checks=True
        ),
        Strategy(
            name="tests-then-judge",
            summary="the judge's preference among those that passed",
            measure=_passed_then_score,
            needs_checks=True,
        ),
        Strategy(name="llm-judge", summary="the judge's preference", measure=_score),
    )
}
"""All strategies by name."""
