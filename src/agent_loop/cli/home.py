"""The home directory of `amux-agent`: sessions, skills, agents and settings; and its environment variables."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from agent_loop.cli.errors import UsageError
from agent_loop.private_directories import make_private_directory

HOME_VARIABLE = "AMUX_AGENT_HOME"
MODEL_VARIABLE = "AMUX_AGENT_MODEL"
SETTINGS = "settings.json"
MAX_SETTINGS = 1 << 20
"""The longest file of settings in bytes."""
KEPT_OUTPUTS = 7 * 24 * 3600.0
"""Seconds for which the outputs of commands are kept."""
AGENT_VARIABLE = "AMUX_AGENT"
"""The variable that is set for commands, so that a program can detect that the agent runs it."""


def agent_home(environ: Mapping[str, str]) -> Path:
    """Return `$AMUX_AGENT_HOME`, or a directory in the user's data directory. Raises `UsageError` without either."""
    configured = environ.get(HOME_VARIABLE)
    if configured:
        return Path(os.path.expanduser(configured))
    data = environ.get("XDG_DATA_HOME", "")
    if data.startswith("/"):  # the XDG specification requires relative paths to be ignored
        return Path(data, "agent-mux", "native")
    try:
        return Path.home() / ".local" / "share" / "agent-mux" / "native"
    except RuntimeError:
        raise UsageError(f"no home directory to store sessions in; set {HOME_VARIABLE} or use --no-session") from None


def sessions_directory(environ: Mapping[str, str]) -> Path:
    """Return the directory of the session files. Raises `UsageError` without a home directory."""
    return agent_home(environ) / "sessions"


def outputs_directory(environ: Mapping[str, str], now: float) -> Path | None:
    """Return the private directory for long outputs of commands, without old ones; None if it cannot be used.

    `now` is the time in seconds since the Unix epoch.
    """
    try:
        directory = agent_home(environ) / "outputs"
        make_private_directory(directory)
        for path in directory.glob("shell-*.log"):
            if now - path.stat().st_mtime > KEPT_OUTPUTS:
                path.unlink(missing_ok=True)
    except (UsageError, OSError):
        return None
    return directory


def user_skills(environ: Mapping[str, str]) -> list[Path]:
    """Return the user's directory of skills, if it exists."""
    homes = [agent_home(environ)] if _has_home(environ) else []
    return [directory for home in homes if (directory := home / "skills").is_dir()]


def project_skills(project: Path) -> list[Path]:
    """Return the directories of skills that a project has; the first takes precedence."""
    directories = (project / ".agents" / "skills", project / ".claude" / "skills")
    return [directory for directory in directories if directory.is_dir()]


def is_trusted_project(environ: Mapping[str, str], project: Path) -> bool:
    """Return whether `trustedProjects` in `settings.json` names the project or a directory above it.

    Raises `UsageError` if the file cannot be read.
    """
    trusted = read_settings(environ).get("trustedProjects", [])
    if not isinstance(trusted, list) or not all(
        isinstance(each, str) and each and "\0" not in each for each in trusted
    ):
        raise UsageError(
            f'{agent_home(environ) / SETTINGS} has trustedProjects that are no directories; use ["/path/of/project"]'
        )
    resolved = project.resolve()
    return any(resolved.is_relative_to(os.path.realpath(os.path.expanduser(each))) for each in trusted)


def agents_directories(environ: Mapping[str, str], project: Path) -> list[tuple[Path, Path | None]]:
    """Return the directories of agent files, each with the project that it belongs to; None for that of the user.

    The project's comes last and takes precedence. They need not exist.
    """
    own: list[tuple[Path, Path | None]] = [(agent_home(environ) / "agents", None)] if _has_home(environ) else []
    return [*own, (project / ".agents" / "agents", project)]


def settings_model(environ: Mapping[str, str]) -> str | None:
    """Return `model` in `settings.json`, None if it is not set. Raises `UsageError` if the file cannot be read."""
    model = read_settings(environ).get("model")
    if model is not None and not isinstance(model, str):
        raise UsageError(
            f'{agent_home(environ) / SETTINGS} has a model that is not text; use "model": "provider:model"'
        )
    return model or None


def read_settings(environ: Mapping[str, str]) -> Mapping[str, Any]:
    """Return the settings, none without a file. Raises `UsageError` if it cannot be read."""
    return read_json(agent_home(environ) / SETTINGS) if _has_home(environ) else {}


def read_json(path: Path) -> Mapping[str, Any]:
    """Return the JSON object in a file, an empty one without the file. Raises `UsageError` with file and position."""
    if path.is_fifo():  # reading would wait for a writer, and for no signal
        raise UsageError(f"{path} cannot be read: it is a pipe; fix or remove it")
    try:
        with path.open("rb") as file:
            data = file.read(MAX_SETTINGS + 1)
        if len(data) > MAX_SETTINGS:
            raise UsageError(f"{path} has more than {MAX_SETTINGS:,} bytes, which is too much for settings")
        content: Any = msgspec.json.decode(data)
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        reason = error.strerror if isinstance(error, OSError) else _syntax_error(data) or error
        raise UsageError(f"{path} cannot be read: {reason}; fix or remove it") from None
    if not isinstance(content, dict):
        raise UsageError(f"{path} cannot be read: it is not a JSON object; fix or remove it")
    return content


def _syntax_error(data: bytes) -> str | None:
    """Return the first syntax error with its line and column; None if only another parser reports an error."""
    try:
        json.loads(data)
    except json.JSONDecodeError as error:
        return f"line {error.lineno}, column {error.colno}: {error.msg}"
    except (ValueError, RecursionError):
        pass
    return None


def _has_home(environ: Mapping[str, str]) -> bool:
    """Whether there is a home directory. A missing one is an error only if something must be stored in it."""
    try:
        agent_home(environ)
    except UsageError:
        return False
    return True
