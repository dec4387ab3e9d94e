"""Hidden checks: files that are copied over a checkout after the agent has ended, so that no agent can read them.

A checkout is written by an agent. A component of a destination that is not a directory, such as a symbolic link to a
place outside, is replaced and never followed.
"""

import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path, PurePath

from agent_mux.errors import AgentMuxError

_SKIPPED = frozenset({".git", "__pycache__"})


def require_hidden_checks(directory: Path, source: Path) -> Path:
    """Return the absolute path of a directory with hidden checks.

    Args:
        directory: The directory, which must have files.
        source: The directory that candidates work on, whose files are copied into workspaces.

    Raises:
        AgentMuxError: VALIDATION_ERROR if the directory cannot be used, or is inside `source`.
    """
    resolved = Path(os.path.realpath(directory))
    if not resolved.is_dir():
        raise _unusable(directory, "is not a directory; create it, or correct the path")
    if resolved.is_relative_to(os.path.realpath(source)):
        raise _unusable(directory, f"is inside {source}, where agents could read it; move it to another place")
    if not list(_files(resolved)):
        raise _unusable(directory, "has no files; put tests into it, in the directories where they belong")
    return resolved


def copy_hidden_checks(directory: Path, checkout: Path) -> tuple[str, ...]:
    """Copy all files of a directory over a checkout. Returns their paths relative to the checkout, sorted.

    Raises:
        AgentMuxError: VALIDATION_ERROR if a file cannot be read, CONFIG_ERROR if it cannot be written.
    """
    copied = []
    for path in _files(directory):
        try:
            destination = _make_place(checkout, path)
            shutil.copyfile(directory / path, destination)
            destination.chmod(stat.S_IMODE((directory / path).stat().st_mode) | stat.S_IRUSR | stat.S_IWUSR)
        except OSError as error:
            reason = error.strerror or str(error)
            raise AgentMuxError("CONFIG_ERROR", f"{directory / path} cannot be copied: {reason}") from error
        copied.append(path.as_posix())
    return tuple(sorted(copied))


def _files(directory: Path) -> Iterator[PurePath]:
    """Yield the files relative to the directory, in order."""
    for place, directories, names in os.walk(directory, onerror=_raise):
        directories[:] = sorted(name for name in directories if name not in _SKIPPED)
        for name in directories:
            if (Path(place) / name).is_symlink():
                raise _unusable(Path(place) / name, "is a symbolic link to a directory; copy its files instead")
        for name in sorted(names):
            path = Path(place) / name
            if not path.is_file():
                raise _unusable(path, "is not a regular file; remove it from the hidden checks")
            yield path.relative_to(directory)


def _make_place(checkout: Path, path: PurePath) -> Path:
    """Create the directories of a destination, replacing what is in the way. Returns the destination, which is free."""
    place = checkout
    for name in path.parts[:-1]:
        place /= name
        if not place.is_dir() or place.is_symlink():
            place.unlink(missing_ok=True)
            place.mkdir()
        elif not os.access(place, os.W_OK | os.X_OK):
            place.chmod(0o700)
    place /= path.name
    if place.is_dir() and not place.is_symlink():
        shutil.rmtree(place)
    else:
        place.unlink(missing_ok=True)
    return place


def _raise(error: OSError) -> None:
    raise _unusable(Path(error.filename), f"cannot be read: {error.strerror or error}") from error


def _unusable(path: Path, problem: str) -> AgentMuxError:
    return AgentMuxError("VALIDATION_ERROR", f"hidden checks: {path} {problem}")
