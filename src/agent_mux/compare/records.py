"""The records of a comparison: what its folder contains, in plain data.

Every record is JSON in camelCase without default values. Times are milliseconds since the epoch, durations are
milliseconds.
"""

from typing import Any

import msgspec

from agent_evaluation.outcomes import CheckStatus, TrialOutcome
from agent_mux.worktrees.git import ChangeKind


class Record(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A record: immutable, in camelCase, without default values."""


class PatchedFile(Record, frozen=True, kw_only=True):
    """A file that a trial changed."""

    path: str
    """Relative to the top of the workspace, with `/`."""
    change: ChangeKind
    added: int | None = None
    """Lines; None for a binary file."""
    removed: int | None = None


class StoredPatch(Record, frozen=True, kw_only=True):
    """The changes of a trial, which `git apply` reproduces byte for byte on the start."""

    path: str
    """The file, relative to the folder of the comparison."""
    size: int
    """Bytes."""
    files: tuple[PatchedFile, ...]
    """The changed files, with their numbers of lines."""
    start: str = ""
    """Tree object of the start."""
    end: str = ""
    """Tree object of the result."""


class TestCaseResult(Record, frozen=True, kw_only=True):
    """One test in a JUnit report."""

    __test__ = False

    name: str
    status: CheckStatus
    message: str = ""


class CheckResult(Record, frozen=True, kw_only=True):
    """The result of one check in one checkout."""

    name: str
    status: CheckStatus
    duration_ms: int = 0
    exit_code: int | None = None
    output: str = ""
    """The last 16 KiB of output."""
    detail: str = ""
    """One sentence: why it did not pass."""
    tests: tuple[TestCaseResult, ...] = ()
    is_flaky: bool = False


class OutsideAccess(Record, frozen=True, kw_only=True):
    """An access of the agent to a place outside of its workspace that could show it a solution."""

    path: str
    tool: str
    """Name of the tool."""
    detail: str = ""
    """The command or the input, shortened."""


class RunUsage(Record, frozen=True, kw_only=True):
    """What a run used, as far as the agent reported it; None: unknown."""

    duration_ms: int = 0
    model_calls: int | None = None
    tool_calls: int = 0
    tool_errors: int = 0
    denials: int = 0
    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    cost_usd: float | None = None
    cost_source: str | None = None
    """`native`: reported by the agent; `computed`: tokens times prices."""
    model: str | None = None
    agent_version: str | None = None


class TrialAttempt(Record, frozen=True, kw_only=True):
    """One run of a trial; a trial has several if the first ones were excluded."""

    number: int
    """From 1."""
    run_id: str
    started_at: int
    ended_at: int | None = None
    """None: agent-mux was killed during the attempt."""
    outcome: TrialOutcome | None = None
    """None as long as the attempt has no end."""
    usage: RunUsage = RunUsage()
    journal: str | None = None
    """The recording of the run, relative to the folder of the comparison."""
    tools: tuple[str, ...] = ()
    """Names of the tools in the order of their calls, at most the first 1,000."""
    text: str = ""
    """The last message of the agent, at most 4,000 characters."""


class Trial(Record, frozen=True, kw_only=True):
    """One trial of a candidate: its attempts, the checks and the outcome."""

    id: str
    """`<candidate>-<number>`."""
    candidate: str
    """Name of the candidate."""
    number: int
    """From 1."""
    attempts: tuple[TrialAttempt, ...] = ()
    """The runs of the trial, in order; all but the last were repeated."""
    outcome: TrialOutcome | None = None
    """None as long as the trial is not over."""
    checks: tuple[CheckResult, ...] = ()
    """The results of the checks, in their order."""
    patch: StoredPatch | None = None
    """The changes of the trial; None if nothing changed or the trial is not over."""
    tampered: tuple[str, ...] = ()
    """Protected files (tests and their configuration) that the agent changed; the checks ran with the original ones.

    `FILE (SETTING, ...)` if only settings of tests were restored in a file.
    """
    accesses: tuple[OutsideAccess, ...] = ()
    """Accesses to places outside of the workspace that could show a solution."""
    is_isolated: bool | None = None
    """Whether places with solutions were hidden from the agent; None: nothing was started."""
    survivors: tuple[str, ...] = ()
    """Processes that the agent left running, and that were ended."""
    notes: tuple[str, ...] = ()
    """Remarks for the reader, one sentence each."""
    workspace: str | None = None
    """The workspace, if it was kept."""

    @property
    def last(self) -> TrialAttempt | None:
        """The last attempt, which decided."""
        return self.attempts[-1] if self.attempts else None


class StartRecord(Record, frozen=True, kw_only=True):
    """The state from which every trial begins."""

    source: str
    """The directory that was frozen: the top of the repository, or the directory itself."""
    subdirectory: str
    """The working directory of the agents, relative to the top of a workspace; `.` for the top."""
    is_repository: bool
    base_commit: str | None
    tree: str
    """Tree object of the frozen files."""
    changed: tuple[str, ...] = ()
    """Uncommitted files that were carried over."""
    included: tuple[str, ...] = ()
    """Ignored files that `.worktreeinclude` names."""
    shared: tuple[str, ...] = ()
    """Links to places outside, which all workspaces share."""
    submodules: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    setup: tuple[str, ...] = ()
    """The setup command that ran once."""
    notes: tuple[str, ...] = ()
    """Sentences for a person about what was copied and what was not."""


class CandidateRecord(Record, frozen=True, kw_only=True):
    """A candidate of the comparison."""

    name: str
    kind: str
    """`agent`, `null` (does nothing) or `oracle` (applies a given patch)."""
    agent: str | None = None
    model: str | None = None
    profile: str | None = None
    options: dict[str, Any] = {}
    """Further options of its runs, without secrets."""
    not_stored: tuple[str, ...] = ()
    """Options that a resumed comparison needs again: functions, and objects with secrets."""
    trials: int = 1
    patch: str | None = None
    """File of the patch of an oracle, relative to the folder of the comparison."""


class ComparisonPlan(Record, frozen=True, kw_only=True):
    """What a comparison was asked to do; written once, before the first trial."""

    id: str
    """ULID."""
    created_at: int
    version: str
    """Version of agent-mux."""
    prompt: str
    candidates: tuple[CandidateRecord, ...]
    checks: tuple[dict[str, Any], ...]
    """The definitions of the checks, as `compare.toml` has them."""
    order: tuple[str, ...]
    """Ids of the trials in the order in which they start."""
    seed: int
    options: dict[str, Any] = {}
    """Limits and options that all candidates share, without secrets."""


class Judgement(Record, frozen=True, kw_only=True):
    """One answer of a judge about two trials."""

    first: str
    """The trial that was shown first."""
    second: str
    preferred: str | None
    """Id of the preferred trial; None: neither."""
    reason: str = ""
    problem: str = ""
    """Why the judge gave no verdict; then the pair counts as not compared."""
    cost_usd: float | None = None
    run_id: str = ""


class Comparison(Record, frozen=True, kw_only=True):
    """A comparison with everything that is known about it: what its folder holds."""

    plan: ComparisonPlan
    """What was asked for: candidates, checks, trials, limits and options."""
    start: StartRecord | None
    """The state of the files from which all trials start; None until it is recorded."""
    trials: tuple[Trial, ...]
    """In the order of the plan."""
    calibration: tuple[tuple[CheckResult, ...], ...] = ()
    """The results of the checks on the untouched start, once per round."""
    judgements: tuple[Judgement, ...] = ()
    """The answers of the judge, each about two trials, in the order in which they were given."""
    status: str = "active"
    """`active`, `interrupted` (agent-mux was killed, or a person stopped it), or `ended`."""
    notes: tuple[str, ...] = ()
    """Remarks for the reader, one sentence each."""
    problem: str = ""
    """Why it could not be carried out; empty if it could, or was only interrupted."""

    @property
    def kept_workspaces(self) -> frozenset[str]:
        """The workspaces of finished trials that were kept on request."""
        return frozenset(trial.workspace for trial in self.trials if trial.workspace is not None)
