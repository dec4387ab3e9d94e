"""Making a directory a project: `.agent-mux/` with a `config.json`, a README and a `.gitignore`.

See docs/spec/run-api.md, sections 1 and 8 (`amux init`).
"""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from agent_mux._util.files import read_text, write_text
from agent_mux._util.paths import OWN_NAME, is_global
from agent_mux.errors import AgentMuxError
from agent_mux.journal.run_index import INDEX
from agent_mux.settings.config import FILE, parse_config

README = f"""# .agent-mux

Settings of agent-mux (`amux`) for runs in this project. Commit everything here except `{INDEX}`.

| file | content |
|---|---|
| `{FILE}` | default options of runs in this project; they override `~/.agent-mux/{FILE}` |
| `profiles/<name>.json` | named options, for `amux run --profile <name>` |
| `{INDEX}` | one line per finished run, for this machine only |

`{FILE}` is JSON without comments. The most common keys (durations have a unit: ms, s, m, h or d):

| key | example | meaning |
|---|---|---|
| `defaultAgent` | `"..."` | agent of runs that name none |
| `defaultModel` | `"..."` | model of runs that name none |
| `agents` | `{{"...": {{"model": "..."}}}}` | the same keys, for one agent only |
| `profile` | `"review"` | profile of runs that name none |
| `approvalMode` | `"deny"` | `prompt`, `yolo` or `deny` |
| `skills` | `["skills/release-notes"]` | skill folders to offer to agents; relative to this directory |
| `policy` | `"rules.toml"` | rules about what agents may do; the path is relative to this directory |
| `timeout`, `inactivityTimeout` | `"10m"` | limits for a whole run, and for a time without output; `"0s"`: none |
| `maxModelCalls`, `maxCostUsd` | `20`, `1.5` | limits |
| `retryPolicy` | `{{"maxAttempts": 3}}` | retry when the agent fails |
| `tags` | `["nightly"]` | tags of every run |
| `runIndex` | `false` | keep no index |

An unknown key or an invalid value is an error that lists what is allowed. Options of a single run (its prompt,
directory and session) and environments, which may contain secrets, are not allowed here.
"""

FileAction = Literal["create", "overwrite", "extend", "keep"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectFile:
    """One file of a project, and what is done with it."""

    path: Path
    action: FileAction
    content: str


def directory_for(named: Path) -> Path:
    """Return the `.agent-mux` for a directory: the directory itself, or the `.agent-mux` inside it."""
    return named if named.name == OWN_NAME else named / OWN_NAME


def plan_project(directory: Path, config: Mapping[str, Any], *, force: bool = False) -> tuple[ProjectFile, ...]:
    """Return the files to write to make a project. Writes nothing.

    Args:
        directory: The `.agent-mux` to create; it may exist.
        config: The content of its `config.json`.
        force: Overwrite existing files.

    Raises:
        AgentMuxError: VALIDATION_ERROR if files exist already, or the directory cannot be a project; CONFIG_ERROR for
            an invalid configuration.
    """
    if is_global(directory):
        message = f"{directory} is the global directory, not a project's; run this in a project"
        raise AgentMuxError("VALIDATION_ERROR", message)
    if os.path.lexists(directory) and not directory.is_dir():
        raise AgentMuxError("VALIDATION_ERROR", f"{directory} exists and is not a directory; move it away")
    parse_config(directory / FILE, config)
    contents = {FILE: json.dumps(dict(config), indent=2, ensure_ascii=False) + "\n", "README.md": README}
    existing = [name for name in contents if os.path.lexists(directory / name)]
    if existing and not force:
        message = f"{directory} already contains {' and '.join(existing)}; --force overwrites"
        raise AgentMuxError("VALIDATION_ERROR", message)
    files = [
        ProjectFile(path=directory / name, action="overwrite" if name in existing else "create", content=content)
        for name, content in contents.items()
    ]
    return (*files, _plan_gitignore(directory / ".gitignore"))


def make_project(files: tuple[ProjectFile, ...]) -> None:
    """Write the planned files. Raises CONFIG_ERROR if one cannot be written."""
    for file in files:
        if file.action != "keep":
            write_text(file.path, file.content, private=False)


def _plan_gitignore(path: Path) -> ProjectFile:
    """Plan to add the run index to the `.gitignore`, unless it contains it."""
    text = read_text(path)
    if text is None:
        return ProjectFile(path=path, action="create", content=f"{INDEX}\n")
    if INDEX in (line.strip().lstrip("/") for line in text.splitlines()):
        return ProjectFile(path=path, action="keep", content=text)
    separator = "" if not text or text.endswith("\n") else "\n"
    return ProjectFile(path=path, action="extend", content=f"{text}{separator}{INDEX}\n")
