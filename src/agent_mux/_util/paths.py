"""The directories of agent-mux's own files. Nothing here creates or writes. See docs/spec/run-api.md, section 1."""

import os
import sys
from pathlib import Path

OWN_NAME = ".agent-mux"
"""Name of the global directory in the home directory, and of the directory in a project."""
_CACHE_NAME = "agent-mux"


def config_dir() -> Path:
    """Return the global directory: `$AGENT_MUX_CONFIG_DIR`, by default `~/.agent-mux`."""
    named = os.environ.get("AGENT_MUX_CONFIG_DIR")
    return Path(os.path.expanduser(named)) if named else Path.home() / OWN_NAME


def cache_dir() -> Path:
    """Return the directory of what can be found out again: `agent-mux` in the user's cache directory of the platform.

    That is `$XDG_CACHE_HOME` (by default `~/.cache`), on macOS `~/Library/Caches`. `$AGENT_MUX_CACHE_DIR` names another
    directory; with `$AGENT_MUX_CONFIG_DIR` it is `cache` in that directory, so that nothing is written elsewhere.
    """
    if named := os.environ.get("AGENT_MUX_CACHE_DIR"):
        return Path(os.path.expanduser(named))
    if os.environ.get("AGENT_MUX_CONFIG_DIR"):
        return config_dir() / "cache"
    base = os.environ.get("XDG_CACHE_HOME", "")
    if Path(base).is_absolute():  # the convention ignores relative paths
        return Path(base) / _CACHE_NAME
    return Path.home() / ("Library/Caches" if sys.platform == "darwin" else ".cache") / _CACHE_NAME


def belongs_to_user(path: Path) -> bool:
    """Return whether a file or directory, or the nearest existing directory above it, belongs to this user.

    It does not in the home of another user, which a process may have after `sudo` or in a container.
    """
    owners = (_owner(one) for one in (path, *path.parents))
    return next((owner for owner in owners if owner is not None), None) == os.geteuid()


def project_dir(
    start: str | os.PathLike[str] | None = None, *, named: str | os.PathLike[str] | None = None
) -> Path | None:
    """Return the `.agent-mux` directory of the project that contains `start`; None outside of projects.

    The search begins in `start` and continues through its parents until it finds the global directory. A directory that
    belongs to another user is skipped, because any user can create one in a world-writable parent.

    Args:
        start: Directory to search from; default: the current directory.
        named: The `.agent-mux` directory or its parent; overrides `$AGENT_MUX_PROJECT_DIR`, which overrides the search.
            It need not exist.
    """
    named = named or os.environ.get("AGENT_MUX_PROJECT_DIR")
    if named:
        return _inside_if_exists(Path(os.path.expanduser(named)).absolute())
    try:
        origin = Path(os.path.realpath(start if start is not None else Path.cwd()))
    except (OSError, ValueError):  # the directory was removed, or its name is impossible
        return None
    for directory in (origin, *origin.parents):
        found = directory / OWN_NAME
        if os.path.isdir(found):  # noqa: PTH112  # returns False, not an error, without permission
            if is_global(found):
                return None
            if _is_trusted(found, origin):
                return found
    return None


def is_global(directory: Path) -> bool:
    """Return whether this is the global directory or `~/.agent-mux`, neither of which belongs to a project."""
    real = os.path.realpath(directory)
    return real in {os.path.realpath(config_dir()), os.path.realpath(Path.home() / OWN_NAME)}


def _inside_if_exists(named: Path) -> Path:
    inside = named / OWN_NAME
    return inside if inside.is_dir() else named


def _is_trusted(found: Path, start: Path) -> bool:
    """Return whether the owner is this user, root, or the owner of the directory that the search began in."""
    owner = _owner(found)
    return owner is not None and owner in {os.geteuid(), 0, _owner(start)}


def _owner(path: Path) -> int | None:
    try:
        return path.stat().st_uid
    except OSError:
        return None
