"""Select a trial of a comparison by a strategy of `agent_evaluation`. Pure.

Candidates that do nothing (`null`) or apply a given patch (`oracle`) are never selected.
"""

from msgspec import structs

from agent_evaluation.strategies.bradley_terry import expected_shares
from agent_evaluation.strategies.judging import Answer, combine_orders, win_rates
from agent_evaluation.strategies.selecting import STRATEGIES, select
from agent_evaluation.strategies.trials import Selection, TrialView
from agent_mux.compare.records import Comparison, Trial
from agent_mux.errors import FieldError, ValidationError

DEFAULT_STRATEGY = "checks-first"


def require_strategy(name: str) -> None:
    """Raise `ValidationError` if no strategy has this name."""
    if name not in STRATEGIES:
        raise ValidationError([FieldError("select", name, f"one of: {', '.join(STRATEGIES)}")])


def selection_of(comparison: Comparison, strategy: str | None = None) -> Selection:
    """Return what a strategy selects among the trials that have an outcome, and why.

    `strategy`: default: that of the plan. Raises `ValidationError` if it is unknown.
    """
    name = strategy or comparison.plan.options.get("select") or DEFAULT_STRATEGY
    require_strategy(name)
    views = views_of(comparison)
    found = select(name, views, scores=_scores(comparison))
    return found if views else structs.replace(found, note=_why_no_views(comparison))


def _why_no_views(comparison: Comparison) -> str:
    has_agents = any(candidate.kind == "agent" for candidate in comparison.plan.candidates)
    return "no trial of an agent has ended" if has_agents else "no trial of an agent took part"


def views_of(comparison: Comparison) -> list[TrialView]:
    """Return what strategies read of the trials of agents that have an outcome."""
    agents = {candidate.name for candidate in comparison.plan.candidates if candidate.kind == "agent"}
    return [
        _view(trial, position)
        for position, trial in enumerate(comparison.trials)
        if trial.candidate in agents and trial.outcome is not None
    ]


def judge_text(comparison: Comparison) -> str:
    """Return what the judge did as one sentence; empty without a judge."""
    if not comparison.judgements:
        return ""
    verdicts = combine_orders(_answers(comparison))
    unlike = [" and ".join(verdict.pair) for verdict in verdicts if not verdict.is_consistent]
    refused = sum(bool(one.problem) for one in comparison.judgements)
    costs = [one.cost_usd for one in comparison.judgements if one.cost_usd is not None]
    unknown = len(comparison.judgements) - len(costs)
    parts = [f"{len(verdicts)} pairs compared in both orders"]
    parts += [f"contradicts itself about {', '.join(unlike)} (a tie)"] if unlike else []
    parts += [f"{refused} answers without a verdict"] if refused else []
    parts += [f"cost ${sum(costs):.4f}"] if costs else []
    parts += [f"{unknown} answers without a known cost"] if unknown else []
    return f"judge: {'; '.join(parts)}"


def _answers(comparison: Comparison) -> list[Answer]:
    return [
        Answer(first=one.first, second=one.second, preferred=one.preferred, cost_usd=one.cost_usd)
        for one in comparison.judgements
        if not one.problem
    ]


def _scores(comparison: Comparison) -> dict[str, float]:
    verdicts = combine_orders(_answers(comparison))
    compared = {one for verdict in verdicts for one in verdict.pair}
    return expected_shares(verdicts) if len(compared) > 2 else win_rates(verdicts)  # one pair


def _view(trial: Trial, position: int) -> TrialView:
    assert trial.outcome is not None  # noqa: S101  # the caller selects those that have one
    last = trial.last
    usage = None if last is None else last.usage
    tokens = None if usage is None else (usage.input_tokens, usage.output_tokens)
    changed = () if trial.patch is None else trial.patch.files
    return TrialView(
        id=trial.id,
        candidate=trial.candidate,
        outcome=trial.outcome,
        position=position,
        checks_passed=sum(check.status == "pass" for check in trial.checks),
        checks_total=len(trial.checks),
        tokens=None if tokens is None or None in tokens else sum(value or 0 for value in tokens),
        cost_usd=None if usage is None else usage.cost_usd,
        duration_ms=None if usage is None else usage.duration_ms or None,
        model_calls=None if usage is None else usage.model_calls,
        text_length=0 if last is None else len(last.text),
        changed_lines=sum((file.added or 0) + (file.removed or 0) for file in changed),
    )
