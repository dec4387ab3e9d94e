"""`config.json`: what holds for runs that do not say otherwise, for everybody here or for one project.

    {
      "defaultAgent": "...",
      "approvalMode": "deny",
      "timeout": 600000,
      "agents": {"...": {"model": "..."}}
    }

Source: run API, section 1 (storage).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agent_mux._util.files import locked, read_text, write_text
from agent_mux.errors import AgentMuxError
from agent_mux.sdk.options import PROFILE_NAME, PROFILE_NAMES
from agent_mux.settings.json_files import EMPTY, edit_object, parse_object, read_object
from agent_mux.settings.options_json import PROFILE_KEYS, Problems, fields_from_json

FILE = "config.json"
_AGENT_KEYS = {key: name for key, name in PROFILE_KEYS.items() if key != "agent"}
_RUN_KEYS = {
    **{key: name for key, name in _AGENT_KEYS.items() if key != "model"},
    "defaultAgent": "agent",
    "defaultModel": "model",
}
CONFIG_KEYS = (*sorted(_RUN_KEYS), "agents", "profile", "runIndex")


@dataclass(frozen=True, slots=True, kw_only=True)
class MuxConfig:
    """What one `config.json` says."""

    path: Path
    said: Mapping[str, Any] = field(default_factory=dict)
    """Fields of `RunOptions`."""
    agents: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """The same for one agent, by name or alias."""
    profile: str | None = None
    """The profile of runs that name none."""
    run_index: bool | None = None
    """Whether runs are written into the index."""


def read_config(path: Path) -> MuxConfig:
    """What a file says; nothing where there is none. Raises CONFIG_ERROR: the file, the key, and what is allowed."""
    told = read_object(path)
    return MuxConfig(path=path) if told is None else parse_config(path, told)


def parse_config(path: Path, told: Mapping[str, Any]) -> MuxConfig:
    """What these contents of a file say. Raises CONFIG_ERROR."""
    problems = Problems()
    rest = {key: value for key, value in told.items() if key not in {"agents", "profile", "runIndex"}}
    said = fields_from_json(_known(rest, problems), problems, keys=_RUN_KEYS)
    agents, profile, run_index = told.get("agents"), told.get("profile"), told.get("runIndex")
    if not (profile is None or (isinstance(profile, str) and PROFILE_NAME.fullmatch(profile))):
        problems.add("profile", profile, f"the name of a profile: {PROFILE_NAMES}")
    if not isinstance(run_index, bool | None):
        problems.add("runIndex", run_index, "true or false")
    by_agent = _by_agent(agents, problems)
    raise_config_error(path, problems)
    for settings in (said, *by_agent.values()):
        settings.update(resolve_file_fields(path, settings))
    return MuxConfig(path=path, said=said, agents=by_agent, profile=profile, run_index=run_index)


def write_config_key(path: Path, key: str, value: Any, *, private: bool, locks: Path) -> None:
    """Change one key of a file, or remove it (None); the others stay. Raises CONFIG_ERROR, CONFIG_LOCK_ERROR."""
    with locked(path, locks=locks):
        parse_config(path, read_object(path) or {})
        text = edit_object(read_text(path) or EMPTY, {key: value})
        parse_config(path, parse_object(text, str(path)))
        write_text(path, text, private=private)


def resolve_file_fields(path: Path, said: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that name files: what is relative is so to the directory of the file that says it."""
    found: dict[str, Any] = {}
    if "policy" in said:
        found["policy"] = path.parent / said["policy"]
    if "skills" in said:
        found["skills"] = [str(path.parent / skill) for skill in said["skills"]]
    return found


def raise_config_error(path: Path, problems: Problems) -> None:
    """Raises CONFIG_ERROR when there are any."""
    if problems.fields:
        raise AgentMuxError("CONFIG_ERROR", f"{path} cannot be used: " + "; ".join(map(str, problems.fields)))


def _known(told: Mapping[str, Any], problems: Problems) -> dict[str, Any]:
    """Without keys that there are not: what those are compared with is the whole list."""
    for key, value in told.items():
        if key not in _RUN_KEYS:
            problems.unknown(key, value, CONFIG_KEYS)
    return {key: value for key, value in told.items() if key in _RUN_KEYS}


def _by_agent(agents: Any, problems: Problems) -> dict[str, dict[str, Any]]:
    if agents is None:
        return {}
    if not isinstance(agents, dict):
        problems.add("agents", agents, "an object with an object for each agent")
        return {}
    made = {}
    for name, told in agents.items():
        if not isinstance(told, dict):
            problems.add(f"agents.{name}", told, "an object")
            continue
        made[name] = fields_from_json(told, problems, keys=_AGENT_KEYS, under=f"agents.{name}.")
    return made
