"""Figures of a report as short texts, which all exports share. An unknown figure is `unknown`, never 0."""

from typing import Any, Literal

from agent_mux.api.comparisons import AttemptCosts, CandidateSummary, ChangedPath, DiffStat, KnownSum, TrialSummary
from agent_mux.api.event_lines import duration

UNKNOWN = "unknown"
NOTHING = "-"
"""Stands where a figure does not exist: a candidate without a run has no cost."""
Tone = Literal["good", "bad", "warning", "plain"]


def rate_text(candidate: CandidateSummary) -> str:
    """Format the passes: `2/3`."""
    return f"{candidate.passes}/{candidate.judged}" if candidate.judged else NOTHING


def interval_text(candidate: CandidateSummary) -> str:
    """Format the interval of the pass rate: `21-94 %`."""
    if candidate.interval is None:
        return NOTHING
    return f"{candidate.interval.low * 100:.0f}-{candidate.interval.high * 100:.0f} %"


def outcome_text(candidate: CandidateSummary) -> str:
    """Format what happened in the trials: `pass`, `fail: length`, `excluded: rate_limited`, with numbers if several."""
    parts = [("pass", candidate.passes)] if candidate.passes else []
    parts += [(f"fail: {cause}", number) for cause, number in candidate.causes.items()]
    parts += [(f"excluded: {cause}", number) for cause, number in candidate.excluded_by_cause.items()]
    parts += [("pending", candidate.pending)] if candidate.pending else []
    return ", ".join(name if candidate.planned == 1 else f"{number} {name}" for name, number in parts) or NOTHING


def candidate_tone(candidate: CandidateSummary) -> Tone:
    """Return how to colour the outcome of a candidate."""
    if not candidate.judged:
        return "warning"
    return "good" if candidate.passes == candidate.judged else "bad" if not candidate.passes else "warning"


def trial_tone(trial: TrialSummary) -> Tone:
    """Return how to colour the outcome of a trial."""
    tones: dict[str | None, Tone] = {"pass": "good", "fail": "bad", None: "plain"}
    return tones.get(trial.verdict, "warning")


def verdict_text(trial: TrialSummary) -> str:
    """Format the verdict with its cause: `fail: length`; the state as long as there is none."""
    if trial.verdict is None:
        return trial.state
    return (
        trial.verdict if trial.verdict == "pass" and trial.cause == "completed" else f"{trial.verdict}: {trial.cause}"
    )


def changes_text(changes: DiffStat | None) -> str:
    """Format the size of changes: `2 files +10 -3`."""
    if changes is None or not changes.files:
        return NOTHING
    binary = f", {changes.binary} binary" if changes.binary else ""
    return f"{changes.files} file{'' if changes.files == 1 else 's'} +{changes.added} -{changes.removed}{binary}"


def time_text(milliseconds: int | None) -> str:
    """Format a duration."""
    return NOTHING if milliseconds is None else duration(milliseconds)


def number_text(value: int | None) -> str:
    """Format a figure of one trial: `1,234`, `12.3k`."""
    if value is None:
        return UNKNOWN
    return f"{value:,}" if value < 10_000 else f"{value / 1000:.1f}k" if value < 1_000_000 else f"{value / 1e6:.1f}M"


def sum_text(total: KnownSum) -> str:
    """Format a sum: `1,234`, `1,234 + 2 unknown`."""
    if total.value is None:
        return UNKNOWN if total.unknown else NOTHING
    return number_text(total.value) + (f" + {total.unknown} unknown" if total.unknown else "")


def usd_text(amount: float) -> str:
    """Format an amount: `$0.10`, and more digits where it is small: `$0.0006`."""
    return f"${amount:.2f}" if amount >= 0.1 or amount == 0 else f"${amount:.4f}"


def cost_text(costs: AttemptCosts) -> str:
    """Format costs with their source: `$0.10`, `$0.02 computed`, `$0.10 + 1 unknown`."""
    parts = [] if costs.native_usd is None else [usd_text(costs.native_usd)]
    parts += [] if costs.computed_usd is None else [f"{usd_text(costs.computed_usd)} computed"]
    if costs.unknown:
        parts.append(f"{costs.unknown} unknown" if parts else UNKNOWN)
    return " + ".join(parts) or NOTHING


def trial_cost_text(trial: TrialSummary) -> str:
    """Format the cost of a trial with its source."""
    if trial.cost_usd is None:
        return UNKNOWN if trial.attempts else NOTHING
    return usd_text(trial.cost_usd) + (" computed" if trial.cost_source == "computed" else "")


def checks_text(trial: TrialSummary) -> str:
    """Format the passed checks: `2/3`."""
    return f"{trial.checks_passed}/{trial.checks_total}" if trial.checks_total else NOTHING


def trials_of(report: Any, candidate: CandidateSummary) -> list[TrialSummary]:
    """Return the trials of a candidate."""
    return [trial for trial in report.trials if trial.candidate == candidate.name]


def candidate_changes(trials: list[TrialSummary]) -> str:
    """Format the changes of a candidate: those of its only trial, else the range of added and removed lines."""
    sizes = [trial.changes for trial in trials if trial.changes is not None]
    if len(sizes) < 2:
        return changes_text(sizes[0] if sizes else None)
    added, removed = [size.added for size in sizes], [size.removed for size in sizes]
    return f"+{_span(added)} -{_span(removed)}"


def who_text(changed: ChangedPath) -> str:
    """Format who changed a file."""
    return ", ".join(changed.candidates)


def _span(values: list[int]) -> str:
    return str(min(values)) if min(values) == max(values) else f"{min(values)}..{max(values)}"
