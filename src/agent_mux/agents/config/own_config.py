"""Our own `config.json` as one more configuration: `amux config get amux` shows it as that of any agent.

Its fields, and what is allowed, are those of `config.py`; this says it in the words of `config.files`.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args, get_type_hints

from agent_mux._util.paths import OWN_NAME, config_dir, is_global, project_dir
from agent_mux.sdk.config import AgentConfig, AgentPaths, ConfigFile, Field, Kind
from agent_mux.sdk.options import ApprovalMode, Isolation, RunOptions, SystemPromptMode, ThinkingEffort
from agent_mux.settings.config import CONFIG_KEYS, FILE, parse_config
from agent_mux.settings.options_json import DURATIONS, PROFILE_KEYS

OWN = "amux"
"""What it is called beside the names of agents."""
_HINTS = get_type_hints(RunOptions, localns={"Policy": Any, "Responder": Any, "RetryPolicy": Any})
_CHOICES: Mapping[Any, tuple[str, ...]] = {
    kind: tuple(map(str, get_args(kind))) for kind in (ApprovalMode, Isolation, SystemPromptMode, ThinkingEffort)
}
_KINDS: tuple[tuple[frozenset[Any], Kind], ...] = (
    (frozenset({bool}), "boolean"),
    (frozenset({int, float}), "number"),
    (frozenset({str}), "string"),
)
_MEANINGS = {
    "agents": "the same keys for one agent, by its name",
    "profile": "the profile of runs that name none",
    "runIndex": "whether runs are written into the index",
    "defaultAgent": "the agent of runs that name none",
    "defaultModel": "the model of runs that name none",
}
_SPECIAL: Mapping[str, Kind] = {
    "agents": "table",
    "command": "list",
    "journal": "boolean",
    "mcpServers": "list",
    "outputSchema": "table",
    "policy": "string",
    "retryPolicy": "table",
    "runIndex": "boolean",
    "skills": "list",
    "tags": "list",
}


def _global(place: AgentPaths) -> Path:
    named = place.environ.get("AGENT_MUX_CONFIG_DIR")
    return (Path(named).expanduser() if named else place.home / OWN_NAME) / FILE


def _project(place: AgentPaths) -> Path | None:
    if place.project is None:
        return None
    found = project_dir(place.project, named=place.environ.get("AGENT_MUX_PROJECT_DIR"))
    found = found if found is not None else place.project / OWN_NAME
    return None if is_global(found) or found == config_dir() else found / FILE


def _field(key: str) -> Field | None:
    name = PROFILE_KEYS.get(key, key)
    hint = _HINTS.get(name)
    choices = next((words for kind, words in _CHOICES.items() if hint in (kind, kind | None)), ())
    meaning = _MEANINGS.get(key) or f"as `RunOptions.{name}`"
    meaning += ", in milliseconds" if name in DURATIONS else ""
    kind: Kind | None = "string" if choices else _SPECIAL.get(key) or _kind_of(hint)
    return None if kind is None else Field(kind=kind, meaning=meaning, choices=choices)


def _kind_of(hint: Any) -> Kind | None:
    """None: several kinds are possible."""
    if hint is None:  # no field of a run
        return "string"
    plain = {part for part in (get_args(hint) or (hint,)) if part is not type(None)}
    return next((kind for types, kind in _KINDS if plain <= types), None)


def _check(path: Path, told: Mapping[str, Any]) -> None:
    parse_config(path, told)


CONFIG = AgentConfig(
    files=(
        ConfigFile(scope="global", format="json", path=_global),
        ConfigFile(scope="project", format="json", path=_project),
    ),
    fields={key: field for key in CONFIG_KEYS if (field := _field(key)) is not None},
    check=_check,
)
