"""`AgentMux.compare`: from the arguments of a caller to a comparison that runs in the client's task group."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict

from agent_mux.compare.candidates import (
    Candidate,
    make_candidate,
    unique_candidates,
    with_absolute_patch,
    with_variables,
)
from agent_mux.compare.checks.definitions import CheckDefinition, read_checks, read_command, require_unique_names
from agent_mux.compare.isolation import IsolationMode
from agent_mux.compare.request import ComparisonRequest
from agent_mux.errors import FieldError, ValidationError
from agent_mux.settings.layers import fields_from_keywords

CandidateLike = Candidate | Mapping[str, Any] | str
CheckLike = CheckDefinition | Mapping[str, Any] | str


class ComparisonFields(TypedDict, total=False):
    """The rules of a comparison as keywords. See `ComparisonRequest` for their meaning."""

    checks: Sequence[CheckLike]
    trials: int
    cwd: str | Path | None
    seed: int | None
    jobs: int
    jobs_per_agent: int | None
    jobs_per_credential: int | None
    attempts: int
    pause_after: int
    stop_early: bool
    carry_changes: bool
    setup_command: Sequence[str]
    hidden_checks: str | Path | None
    protect: Sequence[str]
    has_protection: bool
    confine: IsolationMode
    keep_workspaces: bool
    select: str | None
    judge: str | None
    options: Mapping[str, Any]


def make_request(prompt: str, candidates: Sequence[CandidateLike], rules: Mapping[str, Any]) -> ComparisonRequest:
    """Return a request from the arguments of `AgentMux.compare`.

    Args:
        prompt: The task.
        candidates: Texts as for `--with`, tables as in `compare.toml`, or `Candidate` objects.
        rules: `ComparisonFields`.

    Raises:
        ValidationError: A candidate, an option or a rule is invalid.
    """
    values = given_rules(rules)
    cwd = Path(values.pop("cwd", None) or Path.cwd()).absolute()
    options = values.pop("options", {})
    if not isinstance(options, Mapping):
        raise ValidationError([FieldError("options", options, "a mapping with options of a run")])
    fields_from_keywords(options)
    hidden = values.pop("hidden_checks", None)
    found = unique_candidates(with_absolute_patch(make_candidate(one), cwd) for one in candidates)
    if isinstance(options.get("env"), Mapping):
        found, env = with_variables(found, options["env"])
        options = {**options, "env": env}
    for name in ("setup_command", "protect"):
        if name in values:
            values[name] = tuple(values[name])
    checks = read_all_checks(values.pop("checks", ()), cwd)
    return ComparisonRequest(
        prompt=prompt,
        candidates=found,
        checks=checks,
        cwd=cwd,
        options=options,
        hidden_checks=None if hidden is None else Path(hidden).absolute(),
        **values,
    )


def given_rules(rules: Mapping[str, Any]) -> dict[str, Any]:
    """Return the rules that are not None. Raises `ValidationError` for an unknown one."""
    values = {name: value for name, value in rules.items() if value is not None}
    unknown = sorted(values.keys() - ComparisonFields.__annotations__.keys())
    if unknown:
        known = ", ".join(ComparisonFields.__annotations__)
        raise ValidationError([FieldError(name, values[name], f"one of: {known}") for name in unknown])
    return values


def read_all_checks(checks: Sequence[CheckLike], directory: Path) -> tuple[CheckDefinition, ...]:
    """Return checks from commands, tables and definitions. Raises VALIDATION_ERROR for the first mistake."""
    found: list[CheckDefinition] = []
    for number, check in enumerate(checks, 1):
        if isinstance(check, str):
            found.append(read_command(check))
        elif isinstance(check, Mapping):
            found += read_checks([check], where=f"checks[{number - 1}]", directory=directory)
        else:
            found.append(check)
    require_unique_names(found)
    return tuple(found)
