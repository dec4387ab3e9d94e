"""The report of a comparison: what each trial and each candidate achieved and used.

Everything is derived from the records; nothing is read or started. Numbers of trials obey
`planned == judged + excluded + pending`. A figure that was not reported stays unknown (None) and is not counted as 0.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from statistics import median

from agent_evaluation.intervals import wilson_interval
from agent_evaluation.outcomes import TrialOutcome
from agent_mux.api.comparisons import (
    AccessSummary,
    AttemptCosts,
    AttemptSummary,
    CandidateSummary,
    CheckSummary,
    ComparisonReport,
    DifferencesView,
    DiffStat,
    KnownSum,
    RateInterval,
    TrialState,
    TrialSummary,
)
from agent_mux.compare.gates import GateRule, evaluate_gate
from agent_mux.compare.notes import notes_of
from agent_mux.compare.records import CandidateRecord, CheckResult, Comparison, StoredPatch, Trial, TrialAttempt
from agent_mux.compare.selecting import judge_text, selection_of

MAX_FAILED_TESTS = 100


def report_of(
    comparison: Comparison,
    gate: GateRule | None = None,
    differences: DifferencesView | None = None,
    strategy: str | None = None,
) -> ComparisonReport:
    """Return the report of a comparison, also of one that is active or was interrupted.

    Args:
        comparison: The records.
        gate: What must hold; default: a candidate passes.
        differences: What differs between the candidates, from `differences_of`.
        strategy: How a trial is selected; default: as the comparison did.

    Raises:
        ValidationError: No strategy has this name.
    """
    plan = comparison.plan
    trials = {
        candidate.name: [trial for trial in comparison.trials if trial.candidate == candidate.name]
        for candidate in plan.candidates
    }
    candidates = [summarize_candidate(candidate, trials[candidate.name]) for candidate in plan.candidates]
    return ComparisonReport(
        id=plan.id,
        status=comparison.status,
        created_at=plan.created_at,
        version=plan.version,
        prompt=plan.prompt,
        seed=plan.seed,
        order=list(plan.order),
        base_commit=None if comparison.start is None else comparison.start.base_commit,
        options=dict(plan.options),
        gate=evaluate_gate(comparison, candidates, gate or GateRule()),
        planned=sum(each.planned for each in candidates),
        judged=sum(each.judged for each in candidates),
        excluded=sum(each.excluded for each in candidates),
        pending=sum(each.pending for each in candidates),
        selection=selection_of(comparison, strategy),
        judge=judge_text(comparison),
        candidates=candidates,
        trials=[summarize_trial(trial, comparison.status) for trial in comparison.trials],
        notes=notes_of(comparison),
        differences=differences,
    )


def summarize_candidate(candidate: CandidateRecord, trials: Sequence[Trial]) -> CandidateSummary:
    """Return what a candidate achieved and used in its trials."""
    outcomes = [trial.outcome for trial in trials if trial.outcome is not None]
    scored = [outcome for outcome in outcomes if outcome.is_scored]
    passes = sum(outcome.verdict == "pass" for outcome in scored)
    low, high = wilson_interval(passes, len(scored))
    is_agent = candidate.kind == "agent"
    judged = [trial for trial in trials if trial.outcome is not None and trial.outcome.is_scored]
    times = [_duration_of(trial.last) for trial in judged] if is_agent else []
    attempts = [attempt for trial in trials for attempt in trial.attempts]
    paid = attempts if is_agent else []
    known_times = [time for time in times if time is not None]
    # The trials of a stopped comparison may be fewer than planned; more are possible only in a damaged ledger.
    missing = max(candidate.trials - len(trials), 0)
    return CandidateSummary(
        name=candidate.name,
        kind=candidate.kind,
        agent=candidate.agent,
        model=candidate.model or _only(attempt.usage.model for attempt in attempts),
        profile=candidate.profile,
        planned=len(trials) + missing,
        judged=len(scored),
        excluded=len(outcomes) - len(scored),
        excluded_by_cause=_counted(exclusion_of(outcome) for outcome in outcomes if not outcome.is_scored),
        pending=len(trials) - len(outcomes) + missing,
        passes=passes,
        pass_rate=passes / len(scored) if scored else None,
        interval=RateInterval(low=low, high=high) if scored else None,
        causes=_counted(outcome.cause for outcome in scored if outcome.verdict == "fail"),
        median_duration_ms=round(median(known_times)) if known_times else None,
        attempts=len(attempts),
        **_sums(paid),
        cost=_costs_of(paid),
        tampered=sum(bool(trial.tampered) for trial in trials),
        accesses=sum(bool(trial.accesses) for trial in trials),
        not_isolated=sum(trial.is_isolated is False for trial in trials),
    )


def exclusion_of(outcome: TrialOutcome) -> str:
    """Return why a trial does not count for the score: the cause of `infra`, else the verdict."""
    return outcome.cause if outcome.verdict == "infra" else outcome.verdict


def summarize_trial(trial: Trial, status: str) -> TrialSummary:
    """Return what happened in a trial of a comparison with this status."""
    last, outcome = trial.last, trial.outcome
    ended = last if last is not None and last.ended_at is not None else None
    usage = None if ended is None else ended.usage
    return TrialSummary(
        id=trial.id,
        candidate=trial.candidate,
        number=trial.number,
        state=_state_of(trial, status),
        verdict=None if outcome is None else outcome.verdict,
        cause=None if outcome is None else outcome.cause,
        exit_reason="" if outcome is None else outcome.exit_reason,
        detail="" if outcome is None else outcome.detail,
        is_scored=outcome is not None and outcome.is_scored,
        checks_passed=sum(check.status == "pass" for check in trial.checks),
        checks_total=len(trial.checks),
        checks=[summarize_check(check) for check in trial.checks],
        changes=None if trial.patch is None else diff_stat(trial.patch),
        patch=None if trial.patch is None else trial.patch.path,
        duration_ms=_duration_of(last),
        model_calls=None if usage is None else usage.model_calls,
        tool_calls=None if usage is None else usage.tool_calls,
        tool_errors=None if usage is None else usage.tool_errors,
        denials=None if usage is None else usage.denials,
        input_tokens=None if usage is None else usage.input_tokens,
        output_tokens=None if usage is None else usage.output_tokens,
        cached_tokens=None if usage is None else usage.cached_tokens,
        cost_usd=None if ended is None else cost_of(ended)[0],
        cost_source=None if ended is None else cost_of(ended)[1],
        model=None if usage is None else usage.model,
        agent_version=None if usage is None else usage.agent_version,
        tampered=list(trial.tampered),
        accesses=[AccessSummary(path=each.path, tool=each.tool, detail=each.detail) for each in trial.accesses],
        is_isolated=trial.is_isolated,
        survivors=list(trial.survivors),
        attempts=[_attempt_of(attempt) for attempt in trial.attempts],
        notes=list(trial.notes),
        text="" if last is None else last.text,
        workspace=trial.workspace,
    )


def diff_stat(patch: StoredPatch) -> DiffStat:
    """Return the size of the changes."""
    return DiffStat(
        files=len(patch.files),
        added=sum(file.added or 0 for file in patch.files),
        removed=sum(file.removed or 0 for file in patch.files),
        binary=sum(file.added is None and file.removed is None for file in patch.files),
    )


def cost_of(attempt: TrialAttempt) -> tuple[float | None, str | None]:
    """Return the cost of an attempt in US dollars and its source; None and None if it is unknown."""
    usage = attempt.usage
    if usage.cost_usd is None or usage.cost_source == "unknown":
        return None, None
    return usage.cost_usd, usage.cost_source or "native"


def _state_of(trial: Trial, status: str) -> TrialState:
    if trial.outcome is not None:
        return "ended"
    if not trial.attempts:
        return "pending"
    return "active" if status == "active" else "interrupted"


def _duration_of(attempt: TrialAttempt | None) -> int | None:
    if attempt is None or attempt.ended_at is None:
        return None
    return attempt.usage.duration_ms or attempt.ended_at - attempt.started_at


def summarize_check(check: CheckResult) -> CheckSummary:
    """Return the result of one check."""
    failed = [case.name for case in check.tests if case.status != "pass"]
    return CheckSummary(
        name=check.name,
        status=check.status,
        detail=check.detail,
        is_flaky=check.is_flaky,
        exit_code=check.exit_code,
        duration_ms=check.duration_ms,
        tests=len(check.tests),
        failed_tests=failed[:MAX_FAILED_TESTS],
    )


def _attempt_of(attempt: TrialAttempt) -> AttemptSummary:
    return AttemptSummary(
        number=attempt.number,
        run_id=attempt.run_id,
        started_at=attempt.started_at,
        ended_at=attempt.ended_at,
        verdict=None if attempt.outcome is None else attempt.outcome.verdict,
        cause=None if attempt.outcome is None else attempt.outcome.cause,
        detail="" if attempt.outcome is None else attempt.outcome.detail,
        journal=attempt.journal,
    )


_SUMMED = ("model_calls", "tool_calls", "tool_errors", "denials", "input_tokens", "output_tokens")


def _sums(attempts: Sequence[TrialAttempt]) -> dict[str, KnownSum]:
    """Return the sums over all attempts: what was used is paid, whether or not the attempt counts for the score."""
    return {
        name: _known_sum([getattr(each.usage, name) if each.ended_at is not None else None for each in attempts])
        for name in _SUMMED
    }


def _known_sum(values: Sequence[int | None]) -> KnownSum:
    known = [value for value in values if value is not None]
    return KnownSum(value=sum(known) if known else None, unknown=len(values) - len(known))


def _costs_of(attempts: Sequence[TrialAttempt]) -> AttemptCosts:
    costs = [cost_of(attempt) for attempt in attempts]
    native = [usd for usd, source in costs if usd is not None and source != "computed"]
    computed = [usd for usd, source in costs if usd is not None and source == "computed"]
    return AttemptCosts(
        native_usd=sum(native) if native else None,
        computed_usd=sum(computed) if computed else None,
        unknown=len(costs) - len(native) - len(computed),
    )


def _counted(names: Iterable[str]) -> dict[str, int]:
    return dict(Counter(names).most_common())


def _only(values: Iterable[str | None]) -> str | None:
    """Return the value that all share, else None."""
    found = {value for value in values if value}
    return found.pop() if len(found) == 1 else None
