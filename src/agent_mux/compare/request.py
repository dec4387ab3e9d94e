"""What a comparison is asked to do, and its form in `plan.json`, from which it can be resumed."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agent_evaluation.strategies.selecting import STRATEGIES
from agent_mux.compare.candidates import Candidate
from agent_mux.compare.checks.definitions import CheckDefinition
from agent_mux.compare.isolation import ISOLATION_MODES, IsolationMode
from agent_mux.compare.selecting import DEFAULT_STRATEGY
from agent_mux.compare.stored_options import stored_options
from agent_mux.errors import FieldError, ValidationError
from agent_mux.sdk.checked import Checked

DEFAULT_TIMEOUT = 1800.0  # seconds for each run, for shells in which nobody may be watching
MAX_JOBS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonRequest(Checked):
    """The task, the candidates and the rules of a comparison."""

    prompt: str
    candidates: tuple[Candidate, ...]
    checks: tuple[CheckDefinition, ...] = ()
    trials: int = 1
    """Trials of each candidate that sets no number."""
    cwd: Path = field(default_factory=Path.cwd)
    options: Mapping[str, Any] = field(default_factory=dict)
    """Options of all runs, as keywords of `AgentMux.run`; those of a candidate override them."""
    seed: int | None = None
    """Seed of the order in which trials start; None: a random one, which the plan records."""
    jobs: int = 2
    """Number of trials that may work at the same time."""
    jobs_per_agent: int | None = None
    """Number of trials of one agent that may work at the same time; None: no limit."""
    jobs_per_credential: int | None = None
    """The same for candidates that use the same credentials."""
    attempts: int = 2
    """Number of attempts of a trial whose first ones were excluded (network, rate limit, ...)."""
    pause_after: int = 3
    """Number of successive rate limits after which no further trial with the same credentials is started."""
    stop_early: bool = False
    """Whether to skip the remaining trials of candidates that can no longer win."""
    carry_changes: bool = True
    """Whether trials begin with the uncommitted changes of the repository."""
    setup_command: tuple[str, ...] = ()
    """Program that prepares the start, once."""
    hidden_checks: Path | None = None
    """Directory whose files are added for the checks, and that no agent can read."""
    protect: tuple[str, ...] = ()
    """Patterns, as in `.gitignore`, of further files that checks take from the start, like tests."""
    has_protection: bool = True
    """Whether checks take tests and their configuration from the start."""
    confine: IsolationMode = "auto"
    """Whether agents can reach the repository and other trials: `required` refuses to start if they can."""
    keep_workspaces: bool = False
    select: str | None = None
    """Strategy that selects a trial of the result; None: `checks-first`, or the judge's preference if there is one."""
    judge: str | None = None
    """Agent, as a candidate is written, that compares the trials between which checks do not decide."""

    @property
    def strategy(self) -> str:
        """Name of the strategy that applies: the given one, else the default."""
        if self.select is not None or self.judge is None:
            return self.select or DEFAULT_STRATEGY
        return "tests-then-judge" if self.checks else "llm-judge"

    @property
    def solutions(self) -> tuple[Path, ...]:
        """The files and directories that show a solution: hidden checks and patches of oracles."""
        patches = (candidate.patch for candidate in self.candidates)
        return tuple(path.absolute() for path in (self.hidden_checks, *patches) if path is not None)

    def to_plain(self) -> dict[str, Any]:
        """Return the fields that a plan does not hold elsewhere, without secrets."""
        options, not_stored = stored_options(self.options)
        return {
            "cwd": str(self.cwd),
            "options": options,
            "notStored": list(not_stored),
            "env": sorted(self.options.get("env", {})),  # values are not stored
            "candidateEnv": {one.name: sorted(one.options["env"]) for one in self.candidates if one.options.get("env")},
            "jobs": self.jobs,
            "jobsPerAgent": self.jobs_per_agent,
            "jobsPerCredential": self.jobs_per_credential,
            "attempts": self.attempts,
            "pauseAfter": self.pause_after,
            "stopEarly": self.stop_early,
            "carryChanges": self.carry_changes,
            "setupCommand": list(self.setup_command),
            "hiddenChecks": None if self.hidden_checks is None else str(self.hidden_checks),
            "solutions": [str(path) for path in self.solutions],
            "protect": list(self.protect),
            "hasProtection": self.has_protection,
            "confine": self.confine,
            "keepWorkspaces": self.keep_workspaces,
            "select": self.strategy,
            "judge": self.judge,
        }


def validate_request(request: ComparisonRequest) -> None:
    """Check the fields that no other part checks. Raises `ValidationError` with every invalid one."""
    problems: list[FieldError] = []
    if not request.prompt.strip():
        problems.append(FieldError("prompt", request.prompt, "a task: pass PROMPT, or `prompt` in the task file"))
    for name, least, most in (
        ("trials", 1, 1000),
        ("jobs", 1, MAX_JOBS),
        ("attempts", 1, 10),
        ("pause_after", 1, 1000),
    ):
        problems += _check_count(name, getattr(request, name), least, most)
    for name in ("jobs_per_agent", "jobs_per_credential"):
        if getattr(request, name) is not None:
            problems += _check_count(name, getattr(request, name), 1, MAX_JOBS)
    if request.confine not in ISOLATION_MODES:
        problems.append(FieldError("confine", request.confine, "auto, off or required"))
    if not request.cwd.is_dir():
        problems.append(FieldError("cwd", str(request.cwd), "an existing directory"))
    if request.hidden_checks is not None and not request.hidden_checks.is_dir():
        problems.append(FieldError("hidden_checks", str(request.hidden_checks), "an existing directory"))
    if request.strategy not in STRATEGIES:
        problems.append(FieldError("select", request.select, f"one of: {', '.join(STRATEGIES)}"))
    if problems:
        raise ValidationError(problems)


def shuffled(trials: Sequence[str], seed: int) -> tuple[str, ...]:
    """Return the trials in the random order that belongs to a seed."""
    order = sorted(trials)
    random.Random(seed).shuffle(order)  # noqa: S311  # an order, not a secret
    return tuple(order)


def _check_count(name: str, value: Any, least: int, most: int) -> list[FieldError]:
    is_count = isinstance(value, int) and not isinstance(value, bool) and least <= value <= most
    return [] if is_count else [FieldError(name, value, f"a whole number from {least} to {most}")]
