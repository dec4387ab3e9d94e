"""`compare.toml`: what does not fit on a command line. Flags override it.

prompt = "Fix the failing test."
trials = 3
setup_command = ["npm", "ci"]
hidden_checks = "../hidden"

[options]                # of all runs
timeout = 600
approval_mode = "yolo"

[[candidates]]
agent = "claude"
model = "opus"

[[check]]
command = ["pytest", "-q"]
timeout = 120
"""

import os
import tomllib
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from agent_mux._util.suggestions import did_you_mean
from agent_mux.compare.checks.definitions import read_checks
from agent_mux.compare.request import ComparisonRequest
from agent_mux.errors import AgentMuxError

MAX_TASK_FILE = 1 << 20  # bytes
_NAMES = {"check": "checks"}
_PATHS = ("cwd", "hidden_checks")
_TABLES: Mapping[str, type] = {"candidates": list, "checks": list, "options": dict, "prompt": str}


def read_task_file(path: Path) -> dict[str, Any]:
    """Return the fields of a comparison that a file sets, with absolute paths. Blocking.

    Raises CONFIG_ERROR if the file cannot be read or has unknown keys.
    """
    try:
        content = path.read_bytes()[: MAX_TASK_FILE + 1]
        if len(content) > MAX_TASK_FILE:
            raise AgentMuxError("CONFIG_ERROR", f"{path} is larger than {MAX_TASK_FILE} bytes")
        given = tomllib.loads(content.decode("utf-8"))
    except OSError as error:
        raise AgentMuxError("CONFIG_ERROR", f"{path} cannot be read: {error.strerror or error}") from error
    except ValueError as error:  # not UTF-8, or not TOML
        raise AgentMuxError("CONFIG_ERROR", f"{path} is not valid TOML: {error}") from error
    known = [one.name for one in fields(ComparisonRequest)]
    found: dict[str, Any] = {}
    for key, value in given.items():
        name = _NAMES.get(key, key)
        if name not in known:
            hint = did_you_mean(name, known, f"known keys: {', '.join(known)}, check")
            raise AgentMuxError("CONFIG_ERROR", f"{path} has an unknown key {key!r}; {hint}")
        expected = _TABLES.get(name)
        if expected is not None and not isinstance(value, expected):
            form = f"[[{key}]]" if expected is list else f"[{key}]" if expected is dict else f'{key} = "text"'
            raise AgentMuxError("CONFIG_ERROR", f"{path}: {key} must be given as {form}")
        found[name] = _absolute(value, path) if name in _PATHS and isinstance(value, str) else value
    found["checks"] = read_checks(found.get("checks", []), where=str(path), directory=path.absolute().parent)
    found["candidates"] = [_with_patch(one, path) for one in found.get("candidates", [])]
    return found


def _absolute(value: str, path: Path) -> Path:
    return (path.parent / Path(os.path.expanduser(value))).absolute()


def _with_patch(candidate: Any, path: Path) -> Any:
    if isinstance(candidate, dict) and isinstance(candidate.get("patch"), str):
        return {**candidate, "patch": _absolute(candidate["patch"], path)}
    return candidate
