"""Requests for comparisons: their body, and the directories and options that they may use.

Paths are absolute or relative to the first root, as in requests for runs. What a request names must be inside the
roots: the working directory with its whole repository, hidden checks, patches, schemas, modules of checks, and the
files that options of runs name. Commands of checks and of the setup are not confined, and neither are agents: a caller
who may start runs has the power of a shell.
"""

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from agent_evaluation.strategies.selecting import STRATEGIES
from agent_mux.client import AgentMux
from agent_mux.client.comparisons import make_request
from agent_mux.compare.candidates import MAX_CANDIDATES, MAX_TRIALS, Candidate, fixed_option_problems, make_candidate
from agent_mux.compare.confinement import require_allowed_source
from agent_mux.compare.isolation import IsolationMode
from agent_mux.compare.judge_runs import most_judge_runs
from agent_mux.compare.records import Comparison, ComparisonPlan
from agent_mux.compare.request import DEFAULT_TIMEOUT, MAX_JOBS, ComparisonRequest
from agent_mux.errors import FieldError, ValidationError
from agent_mux.run.handle import RunHandle
from agent_mux.run.plan import RunPlan
from agent_mux.sdk.option_fields import RunOptionFields
from agent_mux.sdk.plain_options import typed_options
from agent_mux.service.known_secrets import KnownSecrets
from agent_mux.service.runs.requests import confined
from agent_mux.settings.allowed_directories import AllowedDirectories
from agent_mux.settings.options_json import camel
from agent_mux.settings.requests import request_from_json

StrategyName = Annotated[str, Meta(extra_json_schema={"enum": list(STRATEGIES)})]
MAX_PLANNED_TRIALS = 1000
"""Trials of all candidates together."""
MAX_CHECKS = 100
_NOT_STORED = frozenset({"mcp_servers", "on_approval_request", "on_input_required"})
"""Options that a plan cannot store: they have secrets, or a meaning only in the process of the caller."""
_NAMED_FILES = ("attachments", "agents_doc", "skills", "add_dirs")
"""Options that name files of the service's machine; see `runs.requests.confined`."""
_JUDGE_OPTIONS = frozenset({"agent", "model", "profile"})

Count = Annotated[int, Meta(ge=1, le=MAX_JOBS)]
Text = Annotated[str, Meta(min_length=1)]


class ComparisonBody(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The body of a request for a comparison: the fields of `AgentMux.compare`."""

    prompt: Annotated[str, Meta(min_length=1, description="The task, for all candidates.")]
    candidates: Annotated[
        list[str | dict[str, Any]],
        Meta(
            min_length=1,
            max_length=MAX_CANDIDATES,
            description=(
                "`claude`, `codex:gpt-5.2`, `null`, `oracle:fix.patch`, as for `amux compare --with`; or objects with "
                "`name`, `trials`, and options of a run (`agent`, `model`, ...) as in `POST /v1/runs`, or with `kind` "
                "(`null`, `oracle`) and `patch`."
            ),
        ),
    ]
    checks: Annotated[
        list[str | dict[str, Any]],
        Meta(
            max_length=MAX_CHECKS,
            description="Commands, which run without a shell; or objects, as `[[check]]` in `compare.toml`.",
        ),
    ] = []
    trials: Annotated[int, Meta(ge=1, le=MAX_TRIALS, description="Trials of each candidate that sets no number.")] = 1
    cwd: Annotated[str, Meta(description="Directory to work on, inside the roots; default: the first root.")] | None = (
        None
    )
    options: Annotated[
        dict[str, Any], Meta(description="Options of all runs, as in `POST /v1/runs`; those of a candidate override.")
    ] = {}
    seed: Annotated[int, Meta(ge=0, description="Seed of the order in which trials start.")] | None = None
    jobs: Annotated[Count, Meta(description="Trials that run at the same time.")] = 2
    jobs_per_agent: Annotated[Count, Meta(description="The same for each agent.")] | None = None
    jobs_per_credential: Annotated[Count, Meta(description="The same for each credential.")] | None = None
    attempts: Annotated[int, Meta(ge=1, le=10, description="Attempts of a trial that network or quota ended.")] = 2
    pause_after: Annotated[
        int, Meta(ge=1, le=1000, description="Rate limits in a row after which a credential is not used any more.")
    ] = 3
    stop_early: Annotated[bool, Meta(description="Skip trials of candidates that can no longer win.")] = False
    carry_changes: Annotated[bool, Meta(description="Begin with the uncommitted changes of the repository.")] = True
    setup_command: Annotated[
        list[Text], Meta(description="Program and arguments that prepare the start, once; no shell.")
    ] = []
    hidden_checks: (
        Annotated[str, Meta(description="Directory, inside the roots, whose files are added for the checks only.")]
        | None
    ) = None
    protect: Annotated[
        list[Text], Meta(description="Patterns of files that checks take from the start, beside tests.")
    ] = []
    has_protection: Annotated[bool, Meta(description="Whether checks take tests from the start.")] = True
    confine: Annotated[IsolationMode, Meta(description="Hide the repository and other trials from agents.")] = "auto"
    keep_workspaces: Annotated[bool, Meta(description="Keep the workspaces of trials.")] = False
    select: Annotated[StrategyName, Meta(description="Strategy that selects a trial.")] | None = None
    judge: Annotated[str, Meta(description="`AGENT` or `AGENT:MODEL` that compares trials that passed.")] | None = None


def comparison_request(body: ComparisonBody, roots: AllowedDirectories, private: Path) -> ComparisonRequest:
    """Return the request of a body, with the paths that it names resolved. Blocking.

    `private`: the directory of the service, which no workspace may contain.

    Raises:
        ValidationError: A field is invalid, or names a path outside of the roots.
    """
    cwd = _working_directory(body.cwd, roots, private)
    hidden = None if body.hidden_checks is None else _resolved(body.hidden_checks, "hiddenChecks", roots)
    candidates = [_candidate(given, f"candidates[{number}]", roots) for number, given in enumerate(body.candidates)]
    _check_judge(body.judge)
    planned = sum(candidate.trials or body.trials for candidate in candidates)
    if planned > MAX_PLANNED_TRIALS:
        raise ValidationError(
            [FieldError("trials", planned, f"at most {MAX_PLANNED_TRIALS} trials of all candidates together")]
        )
    rules = {
        name: getattr(body, name)
        for name in body.__struct_fields__
        if name not in {"prompt", "candidates", "checks", "cwd", "options", "hidden_checks"}
    }
    return make_request(
        body.prompt,
        candidates,
        {
            **rules,
            "cwd": cwd,
            "hidden_checks": hidden,
            "checks": [_check(given, f"checks[{number}]", roots) for number, given in enumerate(body.checks)],
            "options": {"timeout": DEFAULT_TIMEOUT, **_options(body.options, "options")},
        },
    )


def check_stored(plan: ComparisonPlan, roots: AllowedDirectories, private: Path) -> None:
    """Check that a comparison may be resumed: the roots may have changed since. Raises `ValidationError`."""
    _working_directory(plan.options["cwd"], roots, private)
    named = {"hiddenChecks": plan.options.get("hiddenChecks")}
    named |= {f"checks[{number}].directory": check.get("directory") for number, check in enumerate(plan.checks)}
    problems = roots.refusals({field: path for field, path in named.items() if path})
    if problems:
        raise ValidationError(problems)


class ConfinedStarter:
    """The client as a comparison uses it: options name files in the roots only, and runs belong to an owner."""

    def __init__(self, mux: AgentMux, roots: AllowedDirectories, secrets: KnownSecrets, owner: str) -> None:
        """`secrets`: learns those of the runs. `owner`: name of the token that started the comparison."""
        self.adapters = mux.adapters
        self._mux = mux
        self._roots = roots
        self._secrets = secrets
        self._owner = owner

    def plan(self, /, **fields: Any) -> RunPlan:
        """Plan a run, as `AgentMux.plan`. Raises `ValidationError` for a file outside of the roots. Blocks."""
        named = {name: fields[name] for name in _NAMED_FILES if fields.get(name)}
        if named:
            checked = confined(typed_options(named), self._roots)
            fields |= {name: checked[name] for name in named}
        options: RunOptionFields = fields  # type: ignore[assignment]  # keywords of `AgentMux.plan`
        resolved = self._mux.resolve_options(**options)
        self._roots.check_named_files(resolved.options, self.adapters, fields.keys())
        return self._mux.plan(resolved)

    def run(self, plan: RunPlan, /) -> RunHandle:
        """Start a planned run, as `AgentMux.run`."""
        self._secrets.add_run(plan.options.env, plan.options.mcp_servers)
        return self._mux.run(plan, owner=self._owner)


def _working_directory(path: str | None, roots: AllowedDirectories, private: Path) -> Path:
    directory = roots.directory(path)
    require_allowed_source(directory, roots, private)
    return directory


def _resolved(path: Any, field: str, roots: AllowedDirectories) -> str:
    """Return the real path of a file that a request names. Raises `ValidationError` outside of the roots."""
    if not isinstance(path, str) or not path:
        raise ValidationError([FieldError(field, path, "a path")])
    problems = roots.refusals({field: path})
    if problems:
        raise ValidationError(problems)
    return os.path.realpath(roots.default / path)


def _candidate(given: str | dict[str, Any], field: str, roots: AllowedDirectories) -> Candidate:
    if isinstance(given, str):
        found = make_candidate(given)
        _refuse_options(found.options, field)
    else:
        own: dict[str, Any] = {name: given[name] for name in ("kind", "name", "trials", "patch") if name in given}
        rest = {name: value for name, value in given.items() if name not in own}
        found = make_candidate({**own, **_options(rest, field)})
    if found.patch is None:
        return found
    return replace(found, patch=Path(_resolved(str(found.patch), f"{field}.patch", roots)))


def _options(given: Mapping[str, Any], field: str) -> dict[str, Any]:
    """Return options of runs, sent as in a request for a run, as keywords that a plan can store."""
    values = request_from_json(given)
    _refuse_options(values, field)
    return values


def _refuse_options(values: Mapping[str, Any], field: str) -> None:
    problems = fixed_option_problems(values, field, camel) + [
        FieldError(
            f"{field}.{camel(name)}", "(set)", "not set: a comparison does not store it; name a `profile` that has it"
        )
        for name in sorted(_NOT_STORED & values.keys())
    ]
    if problems:
        raise ValidationError(problems)


def _check(given: str | dict[str, Any], field: str, roots: AllowedDirectories) -> str | dict[str, Any]:
    """Return a check whose files are inside the roots: they are read by the service, not by the agent."""
    if isinstance(given, str):
        return given
    named = {name: given[name] for name in ("schema", "directory") if isinstance(given.get(name), str)}
    return {**given, **{name: _resolved(path, f"{field}.{name}", roots) for name, path in named.items()}}


def _check_judge(judge: str | None) -> None:
    """Raise `ValidationError` for a judge with options, which could name files."""
    if judge is None:
        return
    found = make_candidate(judge)
    if found.kind != "agent" or not found.options.keys() <= _JUDGE_OPTIONS:
        raise ValidationError([FieldError("judge", judge, "AGENT or AGENT:MODEL")])


def planned_runs(request: ComparisonRequest) -> int:
    """Return how many runs a request starts at most, those of its judge included, without further attempts."""
    trials = sum(one.trials or request.trials for one in request.candidates if one.kind == "agent")
    return trials if request.judge is None else trials + most_judge_runs(trials)


def runs_left(record: Comparison) -> int:
    """Return how many runs a stored comparison starts at most when it is resumed, without further attempts."""
    agents = {one.name for one in record.plan.candidates if one.kind == "agent"}
    of_agents = [trial for trial in record.trials if trial.candidate in agents]
    left = sum(trial.outcome is None for trial in of_agents)
    if record.plan.options.get("judge") is None:
        return left
    judgeable = sum(trial.outcome is None or trial.outcome.verdict in {"pass", "unjudged"} for trial in of_agents)
    known = sum(not one.problem for one in record.judgements)
    return left + max(most_judge_runs(judgeable) - known, 0)
