"""The `config.json` of agent-mux, described like an agent's configuration, so that `amux config ... amux` works.

Its keys and validation are those of `settings.config`.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args, get_type_hints

from agent_mux._util.paths import OWN_NAME, config_dir, is_global, project_dir
from agent_mux.sdk.config import AgentConfig, AgentPaths, ConfigField, ConfigFile, FieldKind
from agent_mux.sdk.documents import FieldPath
from agent_mux.sdk.options import DURATIONS, ApprovalMode, Isolation, RunOptions, SystemPromptMode, ThinkingEffort
from agent_mux.settings.config import CONFIG_KEYS, FILE, parse_config
from agent_mux.settings.durations import SECOND, with_units
from agent_mux.settings.options_json import PROFILE_KEYS, UNRESOLVED

OWN = "amux"
"""The name of this configuration, used in place of an agent's name."""
_HINTS = get_type_hints(RunOptions, localns=dict.fromkeys(UNRESOLVED, Any))
_CHOICES: Mapping[Any, tuple[str, ...]] = {
    kind: tuple(map(str, get_args(kind))) for kind in (ApprovalMode, Isolation, SystemPromptMode, ThinkingEffort)
}
_KINDS: tuple[tuple[frozenset[Any], FieldKind], ...] = (
    (frozenset({bool}), "boolean"),
    (frozenset({int, float}), "number"),
    (frozenset({str}), "string"),
)
_DESCRIPTIONS = {
    "agents": "the same keys for one agent, by its name",
    "profile": "the profile of runs that name none",
    "runIndex": "whether finished runs are added to the run index",
    "defaultAgent": "the agent of runs that name none",
    "defaultModel": "the model of runs that name none",
}
_SPECIAL_KINDS: Mapping[str, FieldKind] = {
    "addDirs": "list",
    "agents": "table",
    "command": "list",
    "failOn": "list",
    "hooks": "boolean",
    "journal": "boolean",
    "mcpServers": "list",
    "nativeOptions": "table",
    "outputSchema": "table",
    "policy": "string",
    "retryPolicy": "table",
    "runIndex": "boolean",
    "skills": "list",
    "tags": "list",
    "thinkingOverride": "table",
}


def _global_path(paths: AgentPaths) -> Path:
    named = paths.environ.get("AGENT_MUX_CONFIG_DIR")
    return (Path(os.path.expanduser(named)) if named else paths.home / OWN_NAME) / FILE


def _project_path(paths: AgentPaths) -> Path | None:
    if paths.project is None:
        return None
    found = project_dir(paths.project, named=paths.environ.get("AGENT_MUX_PROJECT_DIR"))
    found = found if found is not None else paths.project / OWN_NAME
    return None if is_global(found) or found == config_dir() else found / FILE


def _field(key: str) -> ConfigField | None:
    """Describe a key; None if values of several kinds are allowed."""
    name = PROFILE_KEYS.get(key, key)
    hint = _HINTS.get(name)
    choices = next((values for kind, values in _CHOICES.items() if hint in (kind, kind | None)), ())
    description = _DESCRIPTIONS.get(key) or f"as `RunOptions.{name}`"
    if name in DURATIONS:
        meaning = f"{description}, with a unit (`60s`, `10m`); a number in a file is milliseconds"
        return ConfigField(kind="string", meaning=meaning, or_kinds=("number",))
    kind: FieldKind | None = "string" if choices else _SPECIAL_KINDS.get(key) or _kind_of(hint)
    return None if kind is None else ConfigField(kind=kind, meaning=description, choices=choices)


def _kind_of(hint: Any) -> FieldKind | None:
    """Return the kind of a type annotation; None if several kinds are possible."""
    if hint is None:  # not a field of `RunOptions`
        return "string"
    plain = {part for part in (get_args(hint) or (hint,)) if part is not type(None)}
    return next((kind for types, kind in _KINDS if plain <= types), None)


def _written(field: FieldPath, value: Any) -> Any:
    """Return a value with units at its durations; a duration without a unit is seconds, as in flags and in Python."""
    key = ".".join(field)
    return with_units({key: value}, bare=SECOND)[key]


def _check(path: Path, content: Mapping[str, Any]) -> None:
    parse_config(path, content)


CONFIG = AgentConfig(
    files=(
        ConfigFile(scope="global", format="json", path=_global_path),
        ConfigFile(scope="project", format="json", path=_project_path),
    ),
    fields={key: field for key in CONFIG_KEYS if (field := _field(key)) is not None},
    check=_check,
    written=_written,
)
