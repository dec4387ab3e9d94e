"""Notes on a comparison, which its figures do not show: each has its subjects and a next step."""

from collections.abc import Iterable, Iterator, Mapping

from agent_mux._util.listing import list_names
from agent_mux._util.sanitize import one_line
from agent_mux.api.comparisons import NoteKind, ReportNote
from agent_mux.compare.records import CheckResult, Comparison, Trial

_WIDTH = 300  # characters of a text of an agent or of a check within a note
_LONGEST = 2000  # characters of a note
_LISTED = 5  # paths within a note

_STEPS: Mapping[str, str] = {
    "spawn": "run `amux doctor`, then `amux compare resume {id}`",
    "network": "check the connection, then `amux compare resume {id}`",
    "auth": "log in to the agent (`amux auth check` shows how), then `amux compare resume {id}`",
    "rate_limited": "wait for the quota (`amux quota` shows the reset), then `amux compare resume {id}`",
    "lost": "`amux compare resume {id}` repeats it",
    "aborted": "`amux compare resume {id}` repeats it",
    "internal": "read the error with `amux compare show {id}`, correct the options, then `amux compare resume {id}`",
    "undecided": "make the checks deterministic, or leave the flaky ones out",
    "unjudged": 'judge with a check: `--check "pytest -q"`',
}
"""What to do about a trial that does not count for the score, by the reason."""


def notes_of(comparison: Comparison) -> list[ReportNote]:
    """Return the notes of a comparison, those about the checks first."""
    return [
        *_problem(comparison),
        *_of_checks(comparison),
        *(note for trial in comparison.trials for note in _of_trial(trial, comparison.plan.id)),
        *_of_runs(comparison),
        *_not_isolated(comparison),
        *_pending(comparison),
        *_plain("start", () if comparison.start is None else comparison.start.notes),
        *_plain("comparison", comparison.notes),
    ]


def broken_checks(comparison: Comparison) -> list[str]:
    """Return the names of the checks that could not run on the untouched start."""
    return sorted({check.name for check in _calibrated(comparison) if check.status == "error"})


def flaky_checks(comparison: Comparison) -> list[str]:
    """Return the names of the checks whose status changes without a change of the files."""
    statuses: dict[str, set[str]] = {}
    for check in _calibrated(comparison):
        statuses.setdefault(check.name, set()).add(check.status)
    flagged = {check.name for trial in comparison.trials for check in trial.checks if check.is_flaky}
    flagged |= {check.name for check in _calibrated(comparison) if check.is_flaky}
    return sorted(flagged | {name for name, found in statuses.items() if len(found) > 1})


def _calibrated(comparison: Comparison) -> Iterator[CheckResult]:
    for results in comparison.calibration:
        yield from results


def _of_checks(comparison: Comparison) -> Iterator[ReportNote]:
    for name in broken_checks(comparison):
        detail = next(check.detail for check in _calibrated(comparison) if check.name == name)
        yield _note(
            "broken_check", f"{name} could not run on the untouched start{_because(detail)}", [name],
            "correct the check; its result is no evidence about an agent",
        )  # fmt: skip
    for name in flaky_checks(comparison):
        yield _note(
            "flaky_check", f"{name} gives different results for the same files, so it decides nothing", [name],
            "make it deterministic, or leave it out",
        )  # fmt: skip
    calibrated = list(_calibrated(comparison))
    if calibrated and all(check.status == "pass" for check in calibrated):
        yield _note(
            "indistinct_checks", "all checks pass on the untouched start: they cannot show that the task was done",
            sorted({check.name for check in calibrated}), "add a check that fails without the change",
        )  # fmt: skip
    yield from _of_controls(comparison)


def _of_controls(comparison: Comparison) -> Iterator[ReportNote]:
    """Yield what the candidates with a known result show about the checks."""
    kinds = {candidate.name: candidate.kind for candidate in comparison.plan.candidates}
    for trial in comparison.trials:
        verdict = None if trial.outcome is None else trial.outcome.verdict
        if kinds.get(trial.candidate) == "null" and verdict == "pass":
            yield _note(
                "indistinct_checks", f"{trial.id} changed nothing and passed: the checks cannot distinguish anything",
                [trial.id], "add a check that fails without the change",
            )  # fmt: skip
        if kinds.get(trial.candidate) == "oracle" and verdict == "fail":
            yield _note(
                "indistinct_checks", f"{trial.id} applied the given solution and failed", [trial.id],
                "correct the checks or the given patch",
            )  # fmt: skip


def _of_trial(trial: Trial, comparison_id: str) -> Iterator[ReportNote]:
    outcome = trial.outcome
    if outcome is not None and not outcome.is_scored:
        cause = outcome.cause if outcome.verdict == "infra" else outcome.verdict
        tried = f" after {len(trial.attempts)} attempts" if len(trial.attempts) > 1 else ""
        yield _note(
            "excluded", f"{trial.id} is not in the score: {cause}{tried}{_because(outcome.detail)}", [trial.id],
            _STEPS.get(cause, "").format(id=comparison_id),
        )  # fmt: skip
    if trial.tampered:
        yield _note(
            "tampered", f"{trial.id} changed protected files: {_listed(trial.tampered)}", [trial.id],
            "the checks ran with the original ones; read its patch",
        )  # fmt: skip
    if trial.accesses:
        paths = _listed(access.path for access in trial.accesses)
        yield _note(
            "access", f"{trial.id} accessed places that may show a solution: {paths}", [trial.id],
            "read its transcript before you trust it",
        )  # fmt: skip
    if trial.survivors:
        yield _note(
            "survivors", f"{trial.id} left processes running, which were ended: {_listed(trial.survivors)}",
            [trial.id], "",
        )  # fmt: skip
    if trial.workspace is not None:
        yield _note("comparison", f"{trial.id}: its workspace is kept: {trial.workspace}", [trial.id], "")


def _of_runs(comparison: Comparison) -> Iterator[ReportNote]:
    """Yield the notes of the runs; one that several trials have only once."""
    who: dict[str, list[str]] = {}
    for trial in comparison.trials:
        for note in dict.fromkeys(trial.notes):
            who.setdefault(one_line(note, _WIDTH), []).append(trial.id)
    return (_note("comparison", f"{_listed(trials)}: {note}", trials, "") for note, trials in who.items())


def _not_isolated(comparison: Comparison) -> Iterator[ReportNote]:
    trials = [trial.id for trial in comparison.trials if trial.is_isolated is False]
    if trials:
        yield _note(
            "not_isolated", f"not isolated, so that places outside of the workspace could be read: {_listed(trials)}",
            trials, "read the accesses and the transcripts of these trials",
        )  # fmt: skip


def _problem(comparison: Comparison) -> Iterator[ReportNote]:
    if comparison.problem:
        yield _note(
            "comparison", f"could not be carried out: {comparison.problem}", [],
            f"correct that, then `amux compare resume {comparison.plan.id}`, or start another comparison",
        )  # fmt: skip


def _pending(comparison: Comparison) -> Iterator[ReportNote]:
    pending = [trial.id for trial in comparison.trials if trial.outcome is None]
    if pending and comparison.status != "active":
        yield _note(
            "pending", f"without an outcome: {_listed(pending)}", pending,
            f"`amux compare resume {comparison.plan.id}` continues",
        )  # fmt: skip


def _plain(kind: NoteKind, sentences: Iterable[str]) -> Iterator[ReportNote]:
    return (_note(kind, one_line(sentence, _WIDTH), [], "") for sentence in sentences)


def _note(kind: NoteKind, text: str, subjects: list[str], next_step: str) -> ReportNote:
    return ReportNote(kind=kind, text=one_line(text, _LONGEST), subjects=subjects, next_step=next_step)


def _because(detail: str) -> str:
    return f" ({one_line(detail, _WIDTH)})" if detail else ""


def _listed(names: Iterable[str]) -> str:
    return list_names([one_line(name, _WIDTH) for name in names], _LISTED)
