"""Prepare a comparison: check that every candidate can run, and write the plan; or read the plan of an earlier one."""

import os
import secrets
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec

from agent_mux._util.files import make_directory
from agent_mux._util.ulids import new_ulid
from agent_mux._util.version import __version__
from agent_mux.compare.candidates import Candidate, make_candidate, parse_candidate, with_variables
from agent_mux.compare.checks.definitions import read_checks, to_plain
from agent_mux.compare.checks.hidden import require_hidden_checks
from agent_mux.compare.judge_runs import plan_judge
from agent_mux.compare.ledger import COMPARISONS, PLAN, ComparisonFolder, trial_id
from agent_mux.compare.places import Places
from agent_mux.compare.records import CandidateRecord, ComparisonPlan
from agent_mux.compare.request import ComparisonRequest, shuffled, validate_request
from agent_mux.compare.schedule import Lane
from agent_mux.compare.setup import ComparisonSetup
from agent_mux.compare.stored_options import given_again
from agent_mux.compare.trials import RunClient, now, run_fields
from agent_mux.errors import AgentMuxError, FieldError, ValidationError
from agent_mux.run.environment import base_environment
from agent_mux.run.plan import RunPlan
from agent_mux.sdk.config import AgentPaths
from agent_mux.worktrees.repositories import find_repository

MAX_PATCH = 1 << 28  # bytes of an oracle's patch


def prepare(
    request: ComparisonRequest, starter: RunClient, config_dir: Path, identifier: str | None = None
) -> ComparisonSetup:
    """Check a request and create the folder of its comparison. Blocking.

    Args:
        request: What to compare.
        starter: The client that runs the agents.
        config_dir: The directory in which the folder and the workspaces are created.
        identifier: ULID of the comparison; None: a new one.

    Raises:
        ValidationError: The request, a candidate or a check is invalid.
        AgentMuxError: A candidate cannot run (the errors of `AgentMux.run`), or the folder cannot be written.
    """
    validate_request(request)
    request = _with_hidden_checks(request)
    planned = _plan_candidates(request, starter)
    identifier = identifier or new_ulid()
    seed = secrets.randbelow(1 << 31) if request.seed is None else request.seed
    records = tuple(_record(candidate, request) for candidate in request.candidates)
    plan = ComparisonPlan(
        id=identifier,
        created_at=now(),
        version=__version__,
        prompt=request.prompt,
        candidates=records,
        checks=to_plain(request.checks),
        order=shuffled([trial_id(one.name, number) for one in records for number in range(1, one.trials + 1)], seed),
        seed=seed,
        options=request.to_plain(),
    )
    folder = ComparisonFolder.create(config_dir / COMPARISONS / identifier, plan)
    request = replace(request, candidates=tuple(_keep_patch(one, folder) for one in request.candidates))
    return _setup(request, plan, folder, config_dir, starter, planned)


def prepare_resumption(
    path: Path,
    starter: RunClient,
    config_dir: Path,
    env: Mapping[str, str] | None = None,
    options: Mapping[str, Any] | None = None,
) -> ComparisonSetup:
    """Take over a comparison that has trials left. Blocking.

    Args:
        path: The folder of the comparison.
        starter: The client that runs the agents.
        config_dir: The global directory.
        env: Variables for the agents; plans contain only their names.
        options: The options that the plan does not store, by name or by `CANDIDATE:NAME`.

    Raises:
        AgentMuxError: NOT_FOUND; CONFIG_ERROR; INVALID_STATE_TRANSITION if it is active in another process; the errors
            of a candidate that cannot run.
    """
    folder = ComparisonFolder(path)
    plan = folder.plan()
    request = _with_options(_stored_request(plan, path, env or {}), plan, options or {})
    folder.acquire()
    try:
        planned = _plan_candidates(request, starter)
    except BaseException:
        folder.close()
        raise
    setup = _setup(request, plan, folder, config_dir, starter, planned)
    return replace(setup, is_resumed=True)


@dataclass(slots=True)
class _Planned:
    """What is known of the candidates once one run of each was planned."""

    needed: set[Path]
    """Programs and directories without which their agents do not work."""
    lanes: dict[str, Lane] = field(default_factory=dict)
    environments: dict[str, Mapping[str, str]] = field(default_factory=dict)
    sharing: list[str] = field(default_factory=list)


def _setup(  # noqa: PLR0913, PLR0917  # of two callers
    request: ComparisonRequest,
    plan: ComparisonPlan,
    folder: ComparisonFolder,
    config_dir: Path,
    starter: RunClient,
    planned: _Planned,
) -> ComparisonSetup:
    return ComparisonSetup(
        request=request,
        plan=plan,
        folder=folder,
        places=Places(config_dir, plan.id, request.confine),
        starter=starter,
        lanes=planned.lanes,
        environments=planned.environments,
        sharing=tuple(planned.sharing),
        solutions=tuple(map(Path, plan.options["solutions"])),
        needed=tuple(sorted(planned.needed)),
        environ=os.environ,
    )


def _with_hidden_checks(request: ComparisonRequest) -> ComparisonRequest:
    """Return the request with the absolute path of its hidden checks. Raises VALIDATION_ERROR if agents get them."""
    if request.hidden_checks is None:
        return request
    repository = find_repository(Path(os.path.realpath(request.cwd)))
    source = request.cwd if repository is None else repository.top
    return replace(request, hidden_checks=require_hidden_checks(request.hidden_checks, source))


def _record(candidate: Candidate, request: ComparisonRequest) -> CandidateRecord:
    record = candidate.record(request.trials)
    return record if candidate.patch is None else msgspec.structs.replace(record, patch=_patch_name(candidate))


def _patch_name(candidate: Candidate) -> str:
    return f"oracles/{candidate.name}.patch"


def _keep_patch(candidate: Candidate, folder: ComparisonFolder) -> Candidate:
    """Copy the patch of an oracle into the folder. Returns the candidate with the copy."""
    if candidate.patch is None:
        return candidate
    target = folder.path / _patch_name(candidate)
    try:
        if candidate.patch.stat().st_size > MAX_PATCH:
            raise ValidationError([FieldError("candidates.patch", str(candidate.patch), f"at most {MAX_PATCH} bytes")])
        make_directory(target.parent)
        shutil.copyfile(candidate.patch, target)
        target.chmod(0o600)
    except OSError as error:
        why = f"the patch {candidate.patch} cannot be copied: {error.strerror or error}"
        raise AgentMuxError("CONFIG_ERROR", why) from error
    return replace(candidate, patch=target)


def _stored_request(plan: ComparisonPlan, folder: Path, env: Mapping[str, str]) -> ComparisonRequest:
    """Return the request of a stored plan. Raises `ValidationError` if variables are missing."""
    stored = plan.options
    records = [_stored_candidate(one, folder) for one in plan.candidates]
    candidates, of_all = _with_stored_variables(records, stored, env)
    options = {**stored["options"], **({"env": of_all} if of_all else {})}
    hidden = stored.get("hiddenChecks")
    return ComparisonRequest(
        prompt=plan.prompt,
        candidates=candidates,
        checks=read_checks(plan.checks, where=str(folder / PLAN), directory=Path(stored["cwd"])),
        cwd=Path(stored["cwd"]),
        options=options,
        seed=plan.seed,
        jobs=stored["jobs"],
        jobs_per_agent=stored["jobsPerAgent"],
        jobs_per_credential=stored["jobsPerCredential"],
        attempts=stored["attempts"],
        pause_after=stored["pauseAfter"],
        stop_early=stored["stopEarly"],
        carry_changes=stored["carryChanges"],
        setup_command=tuple(stored["setupCommand"]),
        hidden_checks=None if hidden is None else Path(hidden),
        protect=tuple(stored["protect"]),
        has_protection=stored["hasProtection"],
        confine=stored["confine"],
        keep_workspaces=stored["keepWorkspaces"],
        select=stored.get("select"),
        judge=stored.get("judge"),
    )


def _with_options(request: ComparisonRequest, plan: ComparisonPlan, given: Mapping[str, Any]) -> ComparisonRequest:
    """Return the request with the options that its plan does not store. Raises `ValidationError` without them."""
    of_candidates = {one.name: one.not_stored for one in plan.candidates if one.not_stored}
    of_all, own = given_again(given, plan.options.get("notStored", ()), of_candidates)
    return replace(
        request,
        options={**request.options, **of_all},
        candidates=tuple(replace(one, options={**one.options, **own.get(one.name, {})}) for one in request.candidates),
    )


def _with_stored_variables(
    candidates: Sequence[Candidate], stored: Mapping[str, Any], env: Mapping[str, str]
) -> tuple[tuple[Candidate, ...], dict[str, str]]:
    """Give all runs and single candidates the variables that they had. Returns the candidates and those of all runs.

    A value without a candidate is for each that had the variable. Raises `ValidationError` if values are missing.
    """
    of_runs, own = stored.get("env", ()), stored.get("candidateEnv", {})
    keys = {f"{candidate}:{name}": name for candidate, names in own.items() for name in names}
    values = {**{key: env[name] for key, name in keys.items() if name in env}, **env}
    missing = sorted({*of_runs, *keys} - values.keys())
    if missing:
        allowed = f"values for {', '.join(missing)}, which are not stored: --env NAME=VALUE for each"
        raise ValidationError([FieldError("env", sorted(env), allowed)])
    single = set(keys.values()) - set(of_runs)
    return with_variables(candidates, {key: value for key, value in values.items() if key not in single})


def _stored_candidate(record: CandidateRecord, folder: Path) -> Candidate:
    known = {"agent": record.agent, "model": record.model, "profile": record.profile}
    patch = None if record.patch is None else folder / record.patch
    return make_candidate(
        {**record.options, **known, "kind": record.kind, "name": record.name, "trials": record.trials, "patch": patch}
    )


def _plan_candidates(request: ComparisonRequest, starter: RunClient) -> _Planned:
    """Plan one run of each candidate, so that a candidate that cannot run is reported before the start."""
    if request.judge is not None:
        _plan_judge(request.judge, request, starter)
    names = _CredentialNames()
    found = _Planned(needed={Path(tempfile.gettempdir()), Path(sys.prefix)})
    for candidate in request.candidates:
        if candidate.kind != "agent":
            found.lanes[candidate.name] = Lane("", f"none ({candidate.name})")
            continue
        fields: dict[str, Any] = {**run_fields(request, candidate), "cwd": str(request.cwd), "track_changes": False}
        try:
            plan = starter.plan(**fields)
        except AgentMuxError as error:
            error.message = f"candidate {candidate.name}: {error.message}"
            raise
        found.lanes[candidate.name] = Lane(plan.adapter.agent, names.of(plan))
        found.environments[candidate.name] = base_environment(plan.options, plan.adapter)
        if _shares_configuration(plan, found.environments[candidate.name]):
            found.sharing.append(candidate.name)
        found.needed |= {Path(plan.spawn.argv[0]), Path(plan.environ.get("HOME") or Path.home())}
    return found


def _shares_configuration(plan: RunPlan, environ: Mapping[str, str]) -> bool:
    """Return whether the agent has a configuration that no variable replaces for one trial."""
    installation = plan.adapter.installation()
    directory = installation.config_directory
    if directory is not None:
        return directory.path(AgentPaths(environ=environ)) is None
    return installation.config is not None or bool(plan.options.command)  # nothing is known of a program of the user


def _plan_judge(judge: str, request: ComparisonRequest, starter: RunClient) -> None:
    """Plan a run of the judge, so that a judge that cannot run is reported before the start."""
    if parse_candidate(judge).kind != "agent":
        raise ValidationError([FieldError("judge", judge, "an agent: AGENT or AGENT:MODEL")])
    try:
        plan_judge(starter, judge, request.prompt, cwd=str(request.cwd), env=request.options.get("env"))
    except AgentMuxError as error:
        error.message = f"judge {judge}: {error.message}"
        raise


class _CredentialNames:
    """Gives each credential a name that does not contain it: the variable, numbered if its values differ."""

    def __init__(self) -> None:
        self._values: dict[str, list[str]] = {}

    def of(self, plan: RunPlan) -> str:
        """Return the name of the credentials that a run uses: a variable of the environment, else the agent's own."""
        auth = plan.adapter.installation().auth
        variables = () if auth is None else (name for method in auth.methods for name in method.variables)
        for name in variables:
            value = plan.environ.get(name)
            if value:
                known = self._values.setdefault(name, [])
                if value not in known:
                    known.append(value)
                number = known.index(value) + 1
                return name if number == 1 else f"{name} ({number})"
        return f"those of {plan.adapter.agent}"
