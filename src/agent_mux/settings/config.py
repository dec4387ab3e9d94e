"""`config.json`: default options of runs, for one user (global) or one project.

    {
      "defaultAgent": "...",
      "approvalMode": "deny",
      "timeout": 600000,
      "agents": {"...": {"model": "..."}}
    }

See docs/spec/run-api.md, section 1.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from agent_mux._util.files import locked, read_text, write_text
from agent_mux.errors import AgentMuxError
from agent_mux.sdk.options import PROFILE_NAME, PROFILE_NAMES
from agent_mux.settings.durations import duration_warnings
from agent_mux.settings.json_files import EMPTY, edit_object, parse_object, read_object
from agent_mux.settings.options_json import PROFILE_KEYS, Problems, fields_from_json, replace_deprecated_keys

FILE = "config.json"
_AGENT_KEYS = {key: name for key, name in PROFILE_KEYS.items() if key != "agent"}
_OPTION_KEYS = {
    **{key: name for key, name in _AGENT_KEYS.items() if key != "model"},
    "defaultAgent": "agent",
    "defaultModel": "model",
}
CONFIG_KEYS = (*sorted(_OPTION_KEYS), "agents", "profile", "runIndex")
"""All keys of a `config.json`."""


class MuxConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The parsed content of one `config.json`."""

    path: Path
    options: Mapping[str, Any] = {}
    """Fields of `RunOptions` for all agents."""
    agents: Mapping[str, Mapping[str, Any]] = {}
    """Fields of `RunOptions` for single agents, by name or alias."""
    profile: str | None = None
    """The profile of runs that name none."""
    run_index: bool | None = None
    """Whether finished runs are added to the run index; None: not set."""
    warnings: tuple[str, ...] = ()
    """What the file should say in another way, one sentence each."""


def read_config(path: Path) -> MuxConfig:
    """Read a `config.json`; empty if it does not exist. Raises CONFIG_ERROR with file, key and allowed values."""
    content = read_object(path)
    return MuxConfig(path=path) if content is None else parse_config(path, content)


def parse_config(path: Path, content: Mapping[str, Any]) -> MuxConfig:
    """Validate and convert the content of a `config.json`. Raises CONFIG_ERROR."""
    problems = Problems(directory=path.parent)
    option_values = {key: value for key, value in content.items() if key not in {"agents", "profile", "runIndex"}}
    options = fields_from_json(_without_unknown(option_values, problems), problems, keys=_OPTION_KEYS)
    agents, profile, run_index = content.get("agents"), content.get("profile"), content.get("runIndex")
    if not (profile is None or (isinstance(profile, str) and PROFILE_NAME.fullmatch(profile))):
        problems.add("profile", profile, f"the name of a profile: {PROFILE_NAMES}")
    if not isinstance(run_index, bool | None):
        problems.add("runIndex", run_index, "true or false")
    by_agent = _parse_agents(agents, problems)
    raise_config_error(path, problems)
    for fields in (options, *by_agent.values()):
        fields.update(resolve_file_fields(path, fields))
    return MuxConfig(
        path=path,
        options=options,
        agents=by_agent,
        profile=profile,
        run_index=run_index,
        warnings=duration_warnings(path, content),
    )


def write_config_key(path: Path, key: str, value: Any, *, private: bool, locks: Path) -> None:
    """Set one key of a `config.json`, or remove it (None). Raises CONFIG_ERROR, CONFIG_LOCK_ERROR."""
    with locked(path, locks=locks):
        parse_config(path, read_object(path) or {})
        text = edit_object(read_text(path) or EMPTY, {key: value})
        parse_config(path, parse_object(text, str(path)))
        write_text(path, text, private=private)


def resolve_file_fields(path: Path, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that name files, with relative paths resolved against the directory of the settings file."""
    found: dict[str, Any] = {}
    if "policy" in fields:
        found["policy"] = path.parent / fields["policy"]
    if "skills" in fields:
        found["skills"] = [str(path.parent / skill) for skill in fields["skills"]]
    return found


def raise_config_error(path: Path, problems: Problems) -> None:
    """Raise CONFIG_ERROR if there are any problems."""
    if problems.fields:
        raise AgentMuxError("CONFIG_ERROR", f"{path} cannot be used: " + "; ".join(map(str, problems.fields)))


def _without_unknown(content: Mapping[str, Any], problems: Problems) -> dict[str, Any]:
    """Report unknown keys, with a hint chosen from all keys of the file, and drop them."""
    content = replace_deprecated_keys(content, problems)
    for key, value in content.items():
        if key not in _OPTION_KEYS:
            problems.add_unknown(key, value, CONFIG_KEYS)
    return {key: value for key, value in content.items() if key in _OPTION_KEYS}


def _parse_agents(agents: Any, problems: Problems) -> dict[str, dict[str, Any]]:
    if agents is None:
        return {}
    if not isinstance(agents, dict):
        problems.add("agents", agents, "an object with an object for each agent")
        return {}
    parsed = {}
    for name, content in agents.items():
        if not isinstance(content, dict):
            problems.add(f"agents.{name}", content, "an object")
            continue
        parsed[name] = fields_from_json(content, problems, keys=_AGENT_KEYS, under=f"agents.{name}.")
    return parsed
