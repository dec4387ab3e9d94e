"""Remove a directory of an agent with directories without permissions, mounts, and files that are still created."""

import ctypes
import ctypes.util
import os
import shutil
import stat
import time
from collections.abc import Callable
from pathlib import Path

from agent_mux.errors import AgentMuxError

_MOUNTS = Path("/proc/self/mountinfo")
_MOUNT_POINT = 4  # field of a line
_DETACH = 2  # MNT_DETACH
_PAUSES = (0.0, 0.05, 0.2, 0.5, 1.0)
"""Seconds before each attempt: a process that is being ended can still create files."""


def remove_directory(path: Path) -> None:
    """Remove a directory with all its content; nothing happens if there is none.

    What is mounted in it is unmounted first, so that nothing outside is removed. Raises `AgentMuxError`.
    """
    error: OSError | None = None
    for pause in _PAUSES:
        time.sleep(pause)
        _unmount_below(path)
        try:
            shutil.rmtree(path, onerror=_make_accessible)
        except FileNotFoundError:
            return
        except OSError as one:
            error = one
        if not os.path.lexists(path):
            return
    why = "" if error is None else f": {error.filename or path}: {error.strerror or error}"
    raise AgentMuxError("INTERNAL", f"{path} cannot be removed{why}; remove it yourself")


def _make_accessible(function: Callable[..., object], path: str, _info: object) -> None:
    """Repeat a step that failed with full permissions for its directory."""
    for one in (os.path.dirname(path), path):  # noqa: PTH120
        try:
            if stat.S_ISDIR(os.lstat(one).st_mode):
                os.chmod(one, stat.S_IRWXU)  # noqa: PTH101
        except OSError:
            continue
    if function in {os.rmdir, os.unlink}:
        function(path)
    elif os.path.lexists(path):
        shutil.rmtree(path)


def _unmount_below(path: Path) -> None:
    for point in mount_points_below(path):
        library = ctypes.CDLL(None, use_errno=True)
        if library.umount2(os.fsencode(point), _DETACH) != 0:
            why = os.strerror(ctypes.get_errno())
            raise AgentMuxError("INTERNAL", f"{path} cannot be removed: {point} is mounted there, and umount: {why}")


def mount_points_below(path: Path) -> list[str]:
    """Return what is mounted in a directory, the innermost first; empty where the system has no list of mounts."""
    try:
        lines = _MOUNTS.read_bytes().splitlines()
    except OSError:
        return []
    top = os.path.realpath(path)
    points = [os.fsdecode(line.split(b" ")[_MOUNT_POINT].decode("unicode_escape").encode("latin-1")) for line in lines]
    return sorted((one for one in points if one == top or one.startswith(top + os.sep)), key=len, reverse=True)
