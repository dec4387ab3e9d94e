"""JSON views of comparisons, their trials and the messages of their streams."""

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, UnsetType

from agent_evaluation.strategies.trials import Selection
from agent_mux.api import JsonView
from agent_mux.api.comparisons import CheckSummary, ComparisonReport, TrialSummary
from agent_mux.compare.applying import AppliedTrial
from agent_mux.compare.export.text import text_of
from agent_mux.compare.ledger import AnyFact
from agent_mux.compare.records import Comparison, Judgement, Trial
from agent_mux.compare.report import summarize_check, summarize_trial
from agent_mux.run.base import RunState
from agent_mux.run.handle import RunHandle
from agent_mux.sdk.codec import Delivery
from agent_mux.service.comparisons.store import ComparisonFailure, StoredComparison
from agent_mux.service.views import PendingView, pending_view

TABLE_WIDTH = 120  # columns
ComparisonStatus = Literal["active", "interrupted", "ended"]


class FailureView(JsonView, kw_only=True):
    """Why a comparison could not be carried out to its end."""

    code: str
    message: str


class ComparisonEntry(JsonView, kw_only=True):
    """A comparison in a list. Times are milliseconds since the epoch."""

    id: Annotated[str, Meta(description="ULID.")]
    status: Annotated[
        ComparisonStatus,
        Meta(
            description="`interrupted`: trials are left, and `POST /v1/comparisons/{comparison_id}/resume` runs them."
        ),
    ]
    created_at: int
    prompt: str
    cwd: str
    owner: Annotated[str | UnsetType, Meta(description="Name of the token that created the comparison.")] = UNSET
    candidates: list[str]
    trials: int
    over: Annotated[int, Meta(description="Trials with an outcome.")]
    passed: int
    error: Annotated[FailureView | UnsetType, Meta(description="Why it ended before its trials did.")] = UNSET
    record: Annotated[
        Comparison | UnsetType, Meta(description="With `records`: the stored records, from which the rest is derived.")
    ] = UNSET


class ComparisonPage(JsonView, kw_only=True):
    """A page of comparisons, latest first."""

    comparisons: list[ComparisonEntry]
    next: Annotated[
        str | UnsetType, Meta(description="Pass it as `cursor` to get the next page; absent on the last page.")
    ] = UNSET


class TrialRunView(JsonView, kw_only=True):
    """An active run of a comparison."""

    run_id: str
    state: RunState
    is_busy: Annotated[bool, Meta(description="Whether the agent is working on a prompt.")]
    event_count: int
    pending: Annotated[list[PendingView], Meta(description="The interactions that the agent waits for.")]


class JudgeRunView(JsonView, kw_only=True):
    """The run in which the judge compares two trials."""

    name: Annotated[str, Meta(description="`judge:FIRST:SECOND`: abort it as a trial, by this name.")]
    run: TrialRunView


class ComparisonView(ComparisonEntry, kw_only=True):
    """A comparison with its results so far."""

    table: Annotated[str, Meta(description="The results as plain text, as `amux compare show` prints them.")]
    report: ComparisonReport
    selection: Selection
    judgements: Annotated[list[Judgement], Meta(description="The answers of the judge.")]
    judge_run: Annotated[JudgeRunView | UnsetType, Meta(description="While the judge works.")] = UNSET


class ComparisonTrialView(JsonView, kw_only=True):
    """A trial of a comparison."""

    comparison_id: str
    trial: TrialSummary
    run: Annotated[TrialRunView | UnsetType, Meta(description="While the trial is active.")] = UNSET


class TrialCommandResult(JsonView, kw_only=True):
    """Result of a command to the run of a trial."""

    delivery: Annotated[Delivery, Meta(description="How the command was delivered, as for a run.")]
    run: TrialRunView


class AppliedView(JsonView, kw_only=True):
    """The changes of a trial that were made in the directory that was compared on."""

    trial: str
    source: str
    files: list[str]
    is_merged: Annotated[
        bool, Meta(description="Whether the directory has changed since, so that the changes were merged.")
    ]
    checks: Annotated[list[CheckSummary], Meta(description="The checks afterwards, on a copy of the directory.")]
    tampered: Annotated[
        list[str], Meta(description="Files of the checks that the trial changed, and with which they ran now.")
    ]


class FactMessage(JsonView, kw_only=True, tag="fact"):
    """A fact of the ledger: an attempt started, a trial ended, ..."""

    fact: AnyFact


class TrialEventMessage(JsonView, kw_only=True, tag="event"):
    """An event of a trial's run."""

    trial: str
    candidate: str
    attempt: int
    event: Annotated[dict[str, Any], Meta(description="As in the stream of a run, without accumulated text.")]


def entry_of(stored: StoredComparison, *, has_record: bool) -> ComparisonEntry:
    """Return the entry of a comparison in a list. `has_record`: with the stored records."""
    return ComparisonEntry(**_entry_fields(stored, has_record=has_record))


def view_of(
    stored: StoredComparison,
    report: ComparisonReport,
    judge_run: JudgeRunView | None = None,
    *,
    has_record: bool,
) -> ComparisonView:
    """Return a comparison with its results. May be called in any thread.

    `judge_run`: the active run of its judge. `has_record`: with the stored records.
    """
    record = stored.record
    return ComparisonView(
        **_entry_fields(stored, has_record=has_record),
        table=text_of(report, width=TABLE_WIDTH, color=False),
        report=report,
        selection=report.selection,
        judgements=list(record.judgements),
        judge_run=UNSET if judge_run is None else judge_run,
    )


def _entry_fields(stored: StoredComparison, *, has_record: bool) -> dict[str, Any]:
    record, plan = stored.record, stored.record.plan
    outcomes = [trial.outcome for trial in record.trials if trial.outcome is not None]
    return {
        "id": plan.id,
        "status": record.status,
        "created_at": plan.created_at,
        "prompt": plan.prompt,
        "cwd": plan.options["cwd"],
        "owner": stored.requester.owner or UNSET,
        "candidates": [candidate.name for candidate in plan.candidates],
        "trials": len(record.trials),
        "over": len(outcomes),
        "passed": sum(outcome.verdict == "pass" for outcome in outcomes),
        "error": UNSET if stored.failure is None else _failure_view(stored.failure),
        "record": record if has_record else UNSET,
    }


def _failure_view(failure: ComparisonFailure) -> FailureView:
    return FailureView(code=failure.code, message=failure.message)


def trial_view(record: Comparison, trial: Trial, handle: RunHandle | None) -> ComparisonTrialView:
    """Return a trial. `handle`: its run, if it is active."""
    return ComparisonTrialView(
        comparison_id=record.plan.id,
        trial=summarize_trial(trial, record.status),
        run=UNSET if handle is None else trial_run_view(handle),
    )


def trial_run_view(handle: RunHandle) -> TrialRunView:
    """Return the run of a trial."""
    return TrialRunView(
        run_id=handle.run_id,
        state=handle.state,
        is_busy=handle.is_busy,
        event_count=handle.event_count,
        pending=[pending_view(one) for one in handle.interaction.pending],
    )


def judge_run_view(name: str, handle: RunHandle) -> JudgeRunView:
    """Return the run in which the judge compares two trials."""
    return JudgeRunView(name=name, run=trial_run_view(handle))


def applied_view(applied: AppliedTrial) -> AppliedView:
    """Return what applying a trial changed."""
    return AppliedView(
        trial=applied.trial,
        source=applied.source,
        files=list(applied.files),
        is_merged=applied.is_merged,
        checks=[summarize_check(check) for check in applied.checks],
        tampered=list(applied.tampered),
    )
