"""Looking at files and opening them, once their directory is open; and what the system's errors mean."""

import errno
import os
import stat

from agent_loop.errors import WorkspaceError
from agent_loop.workspace.entries import kind_of_mode
from agent_loop.workspace.expressions import shortened
from agent_loop.workspace.resolving import Place

# A pipe that nobody writes would block; a terminal must not become ours.
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_REASONS = {
    errno.ENOENT: "does not exist; look for it with glob or ls",
    errno.ENOTDIR: "leads through something that is no directory; look at it with ls",
    errno.EISDIR: "is a directory, not a file",
    errno.EACCES: "may not be used: permission denied",
    errno.EPERM: "may not be used: permission denied",
    errno.ENAMETOOLONG: "has a name that is too long for this disk",
    errno.ELOOP: "became a link while it was used; try again",
    errno.ENOSPC: "cannot be written: the disk is full",
    errno.EROFS: "cannot be written: the disk is read-only",
}


def look(place: Place) -> os.stat_result:
    """What is there, itself."""
    return os.stat(place.name, dir_fd=place.directory, follow_symlinks=False)


def look_at(name: str, directory: int) -> os.stat_result | None:
    """None: it is not there (any more)."""
    try:
        return os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return None


def open_file(place: Place, path: str | os.PathLike[str]) -> int:
    """A descriptor of a regular file.

    Looked at before it is opened (opening a device may do something), and again once it is open.
    """
    _refuse_all_but_files(path, look(place))
    descriptor = os.open(place.name, _READ, dir_fd=place.directory)
    try:
        _refuse_all_but_files(path, os.fstat(descriptor))
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _refuse_all_but_files(path: str | os.PathLike[str], known: os.stat_result) -> None:
    if stat.S_ISLNK(known.st_mode):
        raise OSError(errno.ELOOP, "a link")
    if not stat.S_ISREG(known.st_mode):
        raise WorkspaceError(f"{shortened(os.fspath(path))} is {what(known)}, not a file; only files are read")


def what(known: os.stat_result) -> str:
    """What it is, in words."""
    names = {"directory": "a directory", "symlink": "a link", "other": "a pipe, a socket or a device"}
    return names.get(kind_of_mode(known.st_mode), "a file")


def told(path: str | os.PathLike[str], error: OSError) -> WorkspaceError:
    """The error as a sentence for the model."""
    reason = _REASONS.get(error.errno or 0, f"cannot be used: {error.strerror}")
    return WorkspaceError(f"{shortened(os.fspath(path))} {reason}")
