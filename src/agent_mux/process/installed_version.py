"""The version of an agent's program, without starting it: from its npm package, or as it was last detected.

Starting a CLI for its version takes up to seconds, which no run should wait for.
"""

import logging
import os
import re
from pathlib import Path
from typing import Any

import msgspec

from agent_mux._util.files import read_text, write_text
from agent_mux._util.logs import LOGGER
from agent_mux._util.paths import belongs_to_user, cache_dir
from agent_mux.errors import AgentMuxError
from agent_mux.sdk.versions import find_version

CACHE = "versions.json"
"""Versions that `--version` printed, in the cache directory; private, because it names installed programs."""
_PLATFORM = re.compile(r"-(?:darwin|linux|win32)-.*")
"""The suffix of the version of a package with the binary for one platform."""
MAX_DEPTH = 6
"""How many directories above a program are searched for its package."""


class DetectedVersion(msgspec.Struct, frozen=True):
    """The version that a program printed, and the state of its file at that time."""

    version: str
    modified: int
    size: int


class _Package(msgspec.Struct, frozen=True):
    """The used fields of a `package.json`."""

    name: str = ""
    version: str = ""
    bin: str | dict[str, Any] = ""


def installed_version(executable: str) -> str | None:
    """Return the version of a program; None when it is unknown without starting it."""
    real = Path(os.path.realpath(executable))
    return _version_of_package(real) or _cached_version(real)


def remember_version(executable: str, version: str) -> None:
    """Store the version that a program printed, until its file changes.

    Does nothing where that is impossible, or would leave a file in the home of another user. There is no lock: what two
    writers lose, the next detection finds again.
    """
    real = Path(os.path.realpath(executable))
    try:
        path, status = cache_dir() / CACHE, real.stat()
        entry = DetectedVersion(version, status.st_mtime_ns, status.st_size)
        if not belongs_to_user(path) or (known := _read_cache(path)).get(str(real)) == entry:
            return
        entries = {name: one for name, one in known.items() if Path(name).exists()}
        write_text(path, msgspec.json.encode({**entries, str(real): entry}).decode())
    except (OSError, RuntimeError, AgentMuxError) as error:  # RuntimeError: the user has no home directory
        logging.getLogger(LOGGER).debug("the version of %s was not stored: %s", executable, error)


def _version_of_package(program: Path) -> str | None:
    """Return the version of the npm package that provides a program."""
    for directory in list(program.parents)[:MAX_DEPTH]:
        try:
            package = msgspec.json.decode((directory / "package.json").read_bytes(), type=_Package)
        except (OSError, msgspec.MsgspecError):
            continue
        if package.name:
            version = _PLATFORM.sub("", package.version)
            return find_version(version) if _provides(package, directory, program) else None
    return None


def _provides(package: _Package, directory: Path, program: Path) -> bool:
    """Return whether a package provides the program: it is installed, or lists the program as a command.

    The package of a project around the program is neither.
    """
    if "node_modules" in {directory.parent.name, directory.parent.parent.name}:
        return True
    paths = [package.bin] if isinstance(package.bin, str) else package.bin.values()
    return any(isinstance(path, str) and os.path.realpath(directory / path) == str(program) for path in paths)


def _cached_version(program: Path) -> str | None:
    try:
        path, status = cache_dir() / CACHE, program.stat()
        entries = _read_cache(path) if belongs_to_user(path) else {}
    except (OSError, RuntimeError, AgentMuxError):
        return None
    entry = entries.get(str(program))
    if entry is None or (entry.modified, entry.size) != (status.st_mtime_ns, status.st_size):
        return None
    return entry.version


def _read_cache(path: Path) -> dict[str, DetectedVersion]:
    """Return the stored versions; empty for a damaged file."""
    try:
        return msgspec.json.decode(read_text(path) or "{}", type=dict[str, DetectedVersion])
    except msgspec.MsgspecError:
        return {}
