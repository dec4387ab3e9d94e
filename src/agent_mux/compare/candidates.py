"""Candidates of a comparison: an agent with a model, a profile and options; or one of the two built-in ones.

claude                            the agent with its default model
codex:gpt-5.2                     with a model
gemini,trials=3,name=fast         with trials, a name, and any option of a run
null                              does nothing: shows whether the checks can fail
oracle:fix.patch                  applies a patch: shows whether the checks can pass
"""

import json
import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from agent_mux._util.suggestions import did_you_mean
from agent_mux.compare.records import CandidateRecord
from agent_mux.compare.stored_options import stored_options
from agent_mux.errors import FieldError, ValidationError
from agent_mux.sdk.checked import Checked
from agent_mux.sdk.options import RunOptions

CandidateKind = Literal["agent", "null", "oracle"]
NULL, ORACLE = "null", "oracle"
NAME = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9._-]{0,63}")
MAX_TRIALS = 1000
"""Trials of one candidate."""
MAX_CANDIDATES = 100
_OWN_KEYS = ("name", "trials")
FIXED_OPTIONS = frozenset(
    {"prompt", "cwd", "run_id", "journal", "isolation", "interactive", "session_id", "fork_session_id", "session_name",
     "setup_command", "carry_changes", "track_changes", "collect_events"}
)  # fmt: skip
"""Options that the comparison sets for all candidates alike."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate(Checked):
    """A participant of a comparison."""

    name: str = ""
    """Name in tables and folders; default: the agent, with the model if there is one."""
    kind: CandidateKind = "agent"
    options: Mapping[str, Any] = field(default_factory=dict)
    """Options of its runs, as keywords of `AgentMux.run`: `agent`, `model`, `profile`, ..."""
    trials: int | None = None
    """Number of its trials; None: as many as the comparison has for all."""
    patch: Path | None = None
    """The patch of an oracle."""

    def record(self, trials: int) -> CandidateRecord:
        """Return what the plan of a comparison has of the candidate. `trials`: for a candidate that sets none."""
        known = ("agent", "model", "profile")
        stored, not_stored = stored_options({name: value for name, value in self.options.items() if name not in known})
        return CandidateRecord(
            name=self.name,
            kind=self.kind,
            **{name: self.options.get(name) for name in known},
            options=stored,
            not_stored=not_stored,
            trials=self.trials or trials,
        )


def parse_candidate(text: str) -> Candidate:
    """Parse the value of `--with`. Raises `ValidationError`."""
    head, *settings = _split(text)
    agent, _, model = head.partition(":")
    if not agent:
        raise _invalid(text, "AGENT, AGENT:MODEL or AGENT,OPTION=VALUE,...")
    fields: dict[str, Any] = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        key = key.strip().replace("-", "_")
        if not equals:
            raise _invalid(text, f"OPTION=VALUE instead of {setting!r}")
        fields[key] = value if key in {"name", "model", "profile"} else _read_value(value)
    if agent == NULL:
        return make_candidate({"kind": NULL, **fields})
    if agent == ORACLE:
        return make_candidate({"kind": ORACLE, "patch": model, **fields})
    return make_candidate({"agent": agent, **({"model": model} if model else {}), **fields})


def make_candidate(given: "Mapping[str, Any] | str | Candidate") -> Candidate:
    """Return a candidate from plain data: a table of `compare.toml`, a text as for `--with`, or keywords.

    Raises:
        ValidationError: A name, number or option is invalid; the error names the field.
    """
    if isinstance(given, Candidate):
        return make_candidate(
            {**given.options, "kind": given.kind, "name": given.name, "trials": given.trials, "patch": given.patch}
        )
    if isinstance(given, str):
        return parse_candidate(given)
    values = {name.replace("-", "_"): value for name, value in given.items() if value is not None}
    kind = values.pop("kind", "agent")
    if kind not in {"agent", NULL, ORACLE}:
        raise ValidationError([FieldError("candidates.kind", kind, "agent, null or oracle")])
    name, trials, patch = values.pop("name", ""), values.pop("trials", None), values.pop("patch", None)
    _check_options(values, kind)
    if trials is not None and not (
        isinstance(trials, int) and not isinstance(trials, bool) and 0 < trials <= MAX_TRIALS
    ):
        raise ValidationError([FieldError("candidates.trials", trials, f"a whole number from 1 to {MAX_TRIALS}")])
    if kind == ORACLE and not patch:
        raise ValidationError([FieldError("candidates.patch", patch, "the file of the patch: oracle:fix.patch")])
    name = name or _default_name(kind, values)
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise ValidationError([FieldError("candidates.name", name, "1 to 64 letters, digits, `.`, `_` or `-`")])
    return Candidate(name=name, kind=kind, options=values, trials=trials, patch=None if patch is None else Path(patch))


def unique_candidates(candidates: Iterable[Candidate]) -> tuple[Candidate, ...]:
    """Return the candidates if no two have the same name. Raises `ValidationError`."""
    found: dict[str, Candidate] = {}
    for candidate in candidates:
        if candidate.name in found:
            allowed = "a different name for each: AGENT,name=NAME; trials=2 repeats a candidate"
            raise ValidationError([FieldError("candidates", candidate.name, allowed)])
        found[candidate.name] = candidate
    if not found or len(found) > MAX_CANDIDATES:
        allowed = f"1 to {MAX_CANDIDATES} candidates: --with AGENT for each"
        raise ValidationError([FieldError("candidates", len(found), allowed)])
    return tuple(found.values())


def with_variables(
    candidates: Iterable[Candidate], env: Mapping[str, str]
) -> tuple[tuple[Candidate, ...], dict[str, str]]:
    """Give single candidates the variables `CANDIDATE:NAME`. Returns the candidates and the variables of all runs.

    Raises:
        ValidationError: No candidate that is an agent has this name.
    """
    found = tuple(candidates)
    agents = [candidate.name for candidate in found if candidate.kind == "agent"]
    of_all: dict[str, str] = {}
    own: dict[str, dict[str, str]] = {}
    for key, value in env.items():
        owner, colon, name = key.partition(":")
        if not colon:
            of_all[key] = value
        elif owner in agents and name:
            own.setdefault(owner, {})[name] = value
        else:
            known = f"CANDIDATE:NAME with one of: {', '.join(agents)}"
            allowed = f"NAME, or {known}" if agents else "NAME; no candidate is an agent"
            raise ValidationError([FieldError("env", key, allowed)])
    return tuple(_with_own(candidate, own.get(candidate.name, {})) for candidate in found), of_all


def _with_own(candidate: Candidate, env: Mapping[str, str]) -> Candidate:
    if not env:
        return candidate
    return replace(candidate, options={**candidate.options, "env": {**candidate.options.get("env", {}), **env}})


def with_absolute_patch(candidate: Candidate, directory: Path) -> Candidate:
    """Return the candidate with the patch of an oracle as an absolute path, which must exist."""
    if candidate.patch is None:
        return candidate
    path = directory / Path(os.path.expanduser(candidate.patch))
    if not path.is_file():
        raise ValidationError([FieldError("candidates.patch", str(candidate.patch), "an existing patch file")])
    return replace(candidate, patch=path)


def fixed_option_problems(values: Iterable[str], field: str, spell: Callable[[str], str] = str) -> list[FieldError]:
    """Return an error for each option of runs that the comparison sets for all candidates alike.

    `field`: the field of the options. `spell`: returns the name of an option as the caller writes it.
    """
    allowed = "not set: the comparison sets it for all candidates"
    return [FieldError(f"{field}.{spell(name)}", "(set)", allowed) for name in sorted(FIXED_OPTIONS & set(values))]


def _check_options(values: Mapping[str, Any], kind: str) -> None:
    problems = fixed_option_problems(values, "candidates") if kind == "agent" else []
    for key, value in values.items():
        if kind != "agent":
            problems.append(FieldError(f"candidates.{key}", value, f"{' or '.join(_OWN_KEYS)} for {kind}"))
        elif key not in RunOptions.__dataclass_fields__:
            hint = did_you_mean(key, RunOptions.__dataclass_fields__, "docs/reference/python-api.md lists the options")
            problems.append(FieldError(f"candidates.{key}", value, f"an option of a run, name or trials; {hint}"))
    if kind == "agent" and not values.get("agent"):
        problems.append(FieldError("candidates.agent", values.get("agent"), "the name of an agent"))
    if problems:
        raise ValidationError(problems)


def _default_name(kind: str, values: Mapping[str, Any]) -> str:
    if kind != "agent":
        return kind
    words = [str(values[key]) for key in ("agent", "model", "profile") if values.get(key)]
    return re.sub(r"[^a-zA-Z0-9._-]+", "-", "-".join(words)).strip("-.")[:64] or str(values.get("agent", ""))


def _split(text: str) -> list[str]:
    """Split at commas outside of brackets and quotes, so that values can be JSON."""
    parts, depth, quoted = [""], 0, False
    for character in text:
        quoted ^= character == '"'
        if not quoted:
            depth += (character in "[{") - (character in "]}")
        if character == "," and not quoted and depth <= 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts]


def _read_value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _invalid(text: str, allowed: str) -> ValidationError:
    return ValidationError([FieldError("candidates", text, allowed)])
