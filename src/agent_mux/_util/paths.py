"""Where agent-mux keeps its own files. Nothing here writes or makes anything. Source: run API, section 1 (storage)."""

import os
from pathlib import Path

OWN_NAME = ".agent-mux"
"""Of the global directory, in the home directory, and of those of projects."""


def config_dir() -> Path:
    """The global directory: `$AGENT_MUX_CONFIG_DIR`, else `~/.agent-mux`."""
    named = os.environ.get("AGENT_MUX_CONFIG_DIR")
    return Path(named).expanduser() if named else Path.home() / OWN_NAME


def project_dir(
    start: str | os.PathLike[str] | None = None, *, named: str | os.PathLike[str] | None = None
) -> Path | None:
    """The `.agent-mux` of the project that `start` is in; None where it is in none.

    Looked for in `start` and upwards, as far as the one in the home directory, which is the global one. One that
    belongs to somebody else is passed over: in a directory that everybody can write to, anybody can put one.

    Args:
        start: Where to begin; default: the current directory.
        named: Instead of looking, or of `$AGENT_MUX_PROJECT_DIR`: the directory itself, or the one that has it. It
            need not be there.
    """
    named = named or os.environ.get("AGENT_MUX_PROJECT_DIR")
    if named:
        return _meant(Path(named).expanduser().absolute())
    try:
        place = Path(os.path.realpath(start if start is not None else Path.cwd()))
    except (OSError, ValueError):  # it was removed, or no directory can have that name
        return None
    for directory in (place, *place.parents):
        found = directory / OWN_NAME
        if os.path.isdir(found):  # noqa: PTH112  # False, and no error, for what may not be looked at
            if is_global(found):
                return None
            if _is_trusted(found, place):
                return found
    return None


def is_global(directory: Path) -> bool:
    """This directory is the global one, or the `.agent-mux` of the home directory: never one of a project."""
    real = os.path.realpath(directory)
    return real in {os.path.realpath(config_dir()), os.path.realpath(Path.home() / OWN_NAME)}


def _meant(named: Path) -> Path:
    inside = named / OWN_NAME
    return inside if inside.is_dir() else named


def _is_trusted(found: Path, start: Path) -> bool:
    """It belongs to us, to the administrator, or to whoever owns the directory that we were asked to work in."""
    owner = _owner(found)
    return owner is not None and owner in {os.geteuid(), 0, _owner(start)}


def _owner(path: Path) -> int | None:
    try:
        return path.stat().st_uid
    except OSError:
        return None
