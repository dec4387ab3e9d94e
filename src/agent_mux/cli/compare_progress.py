"""The progress of a comparison as plain lines, for logs and for terminals without cursor movement."""

from typing import TYPE_CHECKING, TextIO

from agent_evaluation.outcomes import TrialOutcome
from agent_mux._util.sanitize import one_line
from agent_mux.api.event_lines import count
from agent_mux.compare.ledger import (
    AnyFact,
    AttemptEnded,
    AttemptStarted,
    Begun,
    Calibrated,
    Judged,
    Noted,
    TrialEnded,
)
from agent_mux.compare.records import CheckResult, Trial

if TYPE_CHECKING:
    from agent_mux.compare.engine import ComparisonRun

MAX_LINE = 300  # characters


class ProgressLines:
    """Prints a line for each fact of a comparison."""

    def __init__(self, stream: TextIO, run: "ComparisonRun", *, is_quiet: bool) -> None:
        self._stream = stream
        self._run = run
        self._is_quiet = is_quiet

    async def show(self) -> None:
        """Print until the comparison is over."""
        async for fact in self._run.facts():
            if not self._is_quiet:
                for line in progress_lines(fact, self._run):
                    self._stream.write(f"{one_line(line, MAX_LINE)}\n")
                self._stream.flush()


def progress_lines(fact: AnyFact, run: "ComparisonRun") -> list[str]:
    """Return what a fact states, one sentence per line."""
    text = _line(fact, run)
    return [] if text is None else [text]


def _line(fact: AnyFact, run: "ComparisonRun") -> str | None:  # noqa: PLR0911  # one for each kind of fact
    match fact:
        case Begun(is_resumed=is_resumed):
            planned = run.comparison.trials
            if not is_resumed:  # the outcomes may be those of a later start, if the comparison was resumed
                return f"comparison {run.id} started: {count(len(planned), 'trial')} to run"
            left = sum(trial.outcome is None for trial in planned)
            return f"comparison {run.id} resumed: {left} of {count(len(planned), 'trial')} left"
        case Calibrated(checks=checks):
            first = next(iter(run.comparison.calibration), checks)
            return f"checks on the untouched start{'' if checks is first else ', again'}: {_statuses(checks)}"
        case AttemptStarted(trial=trial, attempt=attempt):
            return f"{trial}: attempt {attempt.number} started" if attempt.number > 1 else f"{trial}: started"
        case AttemptEnded(trial=trial, attempt=attempt) if attempt.outcome is not None:
            return f"{trial}: attempt {attempt.number} excluded: {_outcome(attempt.outcome)}"
        case TrialEnded(trial=ended):
            return _ended(ended)
        case Judged(judgement=one) if one.problem:
            return f"judge: no verdict about {one.first} and {one.second}: {one.problem}"
        case Judged(judgement=one):
            return f"judge: {one.first} and {one.second}: {one.preferred or 'a tie'}"
        case Noted(text=text):
            return text
    return None


def _ended(trial: Trial) -> str:
    assert trial.outcome is not None  # noqa: S101  # that is what the fact states
    parts = [f"{trial.id}: {_outcome(trial.outcome)}"]
    last = trial.last
    if last is not None and last.ended_at is not None:
        if last.usage.duration_ms:  # a candidate without an agent has none
            parts.append(f"{last.usage.duration_ms / 1000:.1f} s")
        if last.usage.cost_usd is not None:
            parts.append(f"${last.usage.cost_usd:.4f}")
    if trial.tampered:
        parts.append(f"changed protected files: {', '.join(trial.tampered[:3])}")
    return ", ".join(parts)


def _outcome(outcome: TrialOutcome) -> str:
    detail = f" ({outcome.detail})" if outcome.detail else ""
    return f"{outcome.verdict}: {outcome.cause}{detail}"


def _statuses(checks: tuple[CheckResult, ...]) -> str:
    return ", ".join(f"{check.name} {check.status}" for check in checks)
