"""The report of a comparison as JSON: what `amux compare --json` prints and the service returns.

`agent_mux.compare.report` makes it from the records. A figure that no agent reported is null, never 0.
"""

from typing import Annotated, Any, Literal

from msgspec import Meta

from agent_evaluation.outcomes import CheckStatus, TrialCause, TrialVerdict
from agent_evaluation.strategies.trials import Selection
from agent_mux.api import JsonView

TrialState = Literal["pending", "active", "interrupted", "ended"]
"""`pending`: no attempt was started; `interrupted`: agent-mux ended before the attempt did."""
NoteKind = Literal[
    "broken_check", "flaky_check", "indistinct_checks", "tampered", "not_isolated", "access", "excluded", "pending",
    "survivors", "start", "comparison",
]  # fmt: skip
GateStatus = Literal["passed", "failed", "not_measured"]


class RateInterval(JsonView, kw_only=True):
    """The 95 % Wilson interval of a pass rate."""

    low: float
    high: float


class KnownSum(JsonView, kw_only=True):
    """A sum over the attempts that reported the figure."""

    value: Annotated[int | None, Meta(description="Null if no attempt reported it.")]
    unknown: Annotated[int, Meta(description="Attempts that did not report it.")]


class AttemptCosts(JsonView, kw_only=True):
    """The cost of all attempts. Amounts from different sources are never mixed."""

    native_usd: Annotated[float | None, Meta(description="US dollars, as reported by agents.")]
    computed_usd: Annotated[float | None, Meta(description="US dollars, computed from price lists.")]
    unknown: Annotated[int, Meta(description="Attempts without a known cost.")]


class DiffStat(JsonView, kw_only=True):
    """The size of a trial's changes."""

    files: int
    added: Annotated[int, Meta(description="Lines; binary files are not counted.")]
    removed: int
    binary: Annotated[int, Meta(description="Number of binary files.")]


class CheckSummary(JsonView, kw_only=True):
    """The result of one check of a trial."""

    name: str
    status: CheckStatus
    detail: str
    is_flaky: bool
    exit_code: int | None
    duration_ms: int
    tests: Annotated[int, Meta(description="Test cases in its report; 0 without a report.")]
    failed_tests: Annotated[list[str], Meta(description="Names of test cases that did not pass, at most 100.")]


class AttemptSummary(JsonView, kw_only=True):
    """One run of a trial."""

    number: int
    run_id: str
    started_at: int
    ended_at: int | None
    verdict: TrialVerdict | None
    cause: TrialCause | None
    detail: str
    journal: str | None


class AccessSummary(JsonView, kw_only=True):
    """An access to a place outside of the workspace that could show a solution."""

    path: str
    tool: str
    detail: str


class TrialSummary(JsonView, kw_only=True):
    """One trial. Figures are those of the attempt that decided; null: unknown."""

    id: str
    candidate: str
    number: int
    state: TrialState
    verdict: TrialVerdict | None
    cause: Annotated[TrialCause | None, Meta(description="How the agent's run ended.")]
    exit_reason: str
    detail: str
    is_scored: bool
    checks_passed: int
    checks_total: int
    checks: list[CheckSummary]
    changes: Annotated[DiffStat | None, Meta(description="Null if nothing was stored.")]
    patch: Annotated[str | None, Meta(description="File of the patch, relative to the folder of the comparison.")]
    duration_ms: int | None
    model_calls: int | None
    tool_calls: int | None
    tool_errors: int | None
    denials: int | None
    input_tokens: int | None
    output_tokens: int | None
    cached_tokens: int | None
    cost_usd: float | None
    cost_source: str | None
    model: str | None
    agent_version: str | None
    tampered: list[str]
    accesses: list[AccessSummary]
    is_isolated: bool | None
    survivors: list[str]
    attempts: list[AttemptSummary]
    notes: list[str]
    text: Annotated[str, Meta(description="The last message of the agent.")]
    workspace: str | None


class CandidateSummary(JsonView, kw_only=True):
    """One candidate: `planned` = `judged` + `excluded` + `pending`."""

    name: str
    kind: str
    agent: str | None
    model: str | None
    profile: str | None
    planned: int
    judged: Annotated[int, Meta(description="Trials that count for the score: they passed or failed.")]
    excluded: int
    excluded_by_cause: Annotated[
        dict[str, int], Meta(description="Causes of excluded trials; `undecided` and `unjudged` for those verdicts.")
    ]
    pending: Annotated[int, Meta(description="Trials without an outcome.")]
    passes: int
    pass_rate: Annotated[float | None, Meta(description="Null if no trial was judged.")]
    interval: RateInterval | None
    causes: Annotated[dict[str, int], Meta(description="How the runs of failed trials ended.")]
    median_duration_ms: Annotated[int | None, Meta(description="Of the judged trials.")]
    attempts: int
    model_calls: KnownSum
    tool_calls: KnownSum
    tool_errors: KnownSum
    denials: KnownSum
    input_tokens: KnownSum
    output_tokens: KnownSum
    cost: AttemptCosts
    tampered: Annotated[int, Meta(description="Trials that changed protected files.")]
    accesses: Annotated[int, Meta(description="Trials that accessed a place with solutions.")]
    not_isolated: Annotated[int, Meta(description="Trials in which places with solutions were not hidden.")]


class ReportNote(JsonView, kw_only=True):
    """Something that a reader of the result must know."""

    kind: NoteKind
    text: str
    subjects: Annotated[list[str], Meta(description="Trials, candidates or checks that it is about.")]
    next_step: str


class GateResult(JsonView, kw_only=True):
    """Whether the comparison achieved what was asked of it."""

    status: GateStatus
    exit_code: Annotated[int, Meta(description="0 passed, 1 failed, 2 could not be measured.")]
    reason: str
    candidate: Annotated[str | None, Meta(description="The candidate that was required; null: any.")]


class ChangedPath(JsonView, kw_only=True):
    """A file and who changed it."""

    path: str
    candidates: list[str]
    trials: list[str]


class SharedChange(JsonView, kw_only=True):
    """Lines of a file that several trials replaced."""

    path: str
    line: Annotated[int, Meta(description="First line in the start.")]
    trials: list[str]
    removed: Annotated[list[str], Meta(description="At most 20 lines.")]
    added: Annotated[list[str], Meta(description="At most 20 lines; empty if the trials differ.")]


class ToolSequence(JsonView, kw_only=True):
    """The tools that a trial called, and where it leaves the sequence that all trials share."""

    trial: str
    calls: int
    counts: dict[str, int]
    first_different: Annotated[str | None, Meta(description="First tool after the common calls; null: it ended.")]


class ToolComparison(JsonView, kw_only=True):
    """The sequences of tools of all trials, by the agents' own names of the tools."""

    common: Annotated[list[str], Meta(description="The first calls, as far as all trials made the same.")]
    trials: list[ToolSequence]


class DifferencesView(JsonView, kw_only=True):
    """What differs between the candidates."""

    by_all: list[ChangedPath]
    by_some: list[ChangedPath]
    by_one: list[ChangedPath]
    identical: Annotated[list[SharedChange], Meta(description="Changes that several trials made alike.")]
    overlapping: Annotated[list[SharedChange], Meta(description="Places that several trials changed differently.")]
    tools: ToolComparison
    unread: Annotated[list[str], Meta(description="Trials whose patch is missing or too large to be compared.")]


class ComparisonReport(JsonView, kw_only=True):
    """A comparison with its result."""

    id: str
    """Id of the comparison, a ULID."""
    status: str
    """`active`, `interrupted` or `ended`."""
    created_at: int
    """Time of the start, in milliseconds since the epoch."""
    version: str
    """Version of agent-mux that made the comparison."""
    prompt: str
    """The task."""
    seed: int
    """The number from which the order of the trials follows."""
    order: list[str]
    """Ids of the trials, in the order in which they were started."""
    base_commit: str | None
    """The commit of the start; None without a repository."""
    options: dict[str, Any]
    """Options of all runs, as they were given."""
    gate: GateResult
    """Whether the result passes the gate, and why not."""
    planned: int
    """Number of trials that were asked for."""
    judged: int
    """Number of trials with a judgement."""
    excluded: int
    """Number of trials that are over without a judgement; they do not count."""
    pending: int
    """Number of trials that are not over."""
    selection: Selection
    """The trial that the strategy selects, or why it selects none."""
    judge: str
    """What the judge did, as one sentence; empty without a judge."""
    candidates: list[CandidateSummary]
    """The figures of each candidate."""
    trials: list[TrialSummary]
    """The outcome of each trial."""
    notes: list[ReportNote]
    """Remarks for the reader."""
    differences: DifferencesView | None
    """What differs between the candidates; None if it was not asked for."""
