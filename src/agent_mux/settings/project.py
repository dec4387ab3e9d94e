"""Making a directory a project: `.agent-mux/` with a `config.json`, a page about it, and a `.gitignore`.

Source: run API, sections 1 (storage) and 8 (`amux init`).
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

What holds for the runs of agent-mux (`amux`) in this project. Everything here but
`{INDEX}` is meant to be shared with it.

| file | what it is |
|---|---|
| `{FILE}` | defaults of all runs in this project; they go before `~/.agent-mux/{FILE}` |
| `profiles/<name>.json` | options under a name, for `amux run --profile <name>` |
| `{INDEX}` | one line for each run that ended; for this machine alone |

`{FILE}` is JSON without comments. It may have these keys, among others; times are in milliseconds:

| key | example | what it says |
|---|---|---|
| `defaultAgent` | `"..."` | the agent of runs that name none |
| `defaultModel` | `"..."` | the model of runs that name none |
| `agents` | `{{"...": {{"model": "..."}}}}` | the same keys for one agent |
| `profile` | `"review"` | the profile of runs that name none |
| `approvalMode` | `"deny"` | `prompt`, `yolo` or `deny` |
| `skills` | `["skills/release-notes"]` | folders of skills that agents are told of; relative to this directory |
| `policy` | `"rules.toml"` | rules about what agents may do; the path is relative to this directory |
| `timeout`, `inactivityTimeout` | `600000` | for a whole run, and without any output; 0: none |
| `maxTurns`, `maxCostUsd` | `20`, `1.5` | limits |
| `retryPolicy` | `{{"maxAttempts": 3}}` | try again when the agent fails |
| `tags` | `["nightly"]` | of every run |
| `runIndex` | `false` | keep no index |

A key that is unknown, or a value that cannot be, is an error that says what is allowed. What one run is about (its
prompt, its directory, its session) and environments, which may hold secrets, have no place here.
"""

FileAction = Literal["create", "overwrite", "extend", "keep"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectFile:
    """One file of a project, and what becomes of it."""

    path: Path
    action: FileAction
    content: str


def directory_for(named: Path) -> Path:
    """The `.agent-mux` that is meant by a directory: itself, or the one in it."""
    return named if named.name == OWN_NAME else named / OWN_NAME


def plan_project(directory: Path, config: Mapping[str, Any], *, force: bool = False) -> tuple[ProjectFile, ...]:
    """What has to be written to make a project. Writes nothing.

    Args:
        directory: The `.agent-mux` to be; need not be there.
        config: What its `config.json` is to say.
        force: Write over files that are there.

    Raises:
        AgentMuxError: VALIDATION_ERROR when there are such files already, or no project can be here; CONFIG_ERROR for
            a configuration that cannot be.
    """
    if is_global(directory):
        here = f"{directory} is the global directory, and no project's; go into the directory of a project"
        raise AgentMuxError("VALIDATION_ERROR", here)
    if os.path.lexists(directory) and not directory.is_dir():
        raise AgentMuxError("VALIDATION_ERROR", f"{directory} is there and no directory; move it away")
    parse_config(directory / FILE, config)
    contents = {FILE: json.dumps(dict(config), indent=2, ensure_ascii=False) + "\n", "README.md": README}
    there = [name for name in contents if os.path.lexists(directory / name)]
    if there and not force:
        taken = f"{directory} has {' and '.join(there)} already; --force writes over it"
        raise AgentMuxError("VALIDATION_ERROR", taken)
    steps = [
        ProjectFile(path=directory / name, action="overwrite" if name in there else "create", content=content)
        for name, content in contents.items()
    ]
    return (*steps, _ignoring(directory / ".gitignore"))


def make_project(steps: tuple[ProjectFile, ...]) -> None:
    """Write it. Raises CONFIG_ERROR for what cannot be written."""
    for step in steps:
        if step.action != "keep":
            write_text(step.path, step.content, private=False)


def _ignoring(path: Path) -> ProjectFile:
    told = read_text(path)
    if told is None:
        return ProjectFile(path=path, action="create", content=f"{INDEX}\n")
    if INDEX in (line.strip().lstrip("/") for line in told.splitlines()):
        return ProjectFile(path=path, action="keep", content=told)
    gap = "" if not told or told.endswith("\n") else "\n"
    return ProjectFile(path=path, action="extend", content=f"{told}{gap}{INDEX}\n")
