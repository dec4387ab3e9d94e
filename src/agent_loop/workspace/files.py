"""Stat, open and atomically replace files in a directory that is already open; describe errors of the system."""

import errno
import itertools
import os
import stat
from contextlib import suppress

from agent_loop.errors import WorkspaceError
from agent_loop.workspace.entries import kind_of_mode
from agent_loop.workspace.paths import FileLocation, shortened

# O_NONBLOCK: opening a pipe without a writer would block. O_NOCTTY: a terminal must not become ours.
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_KEPT_PERMISSIONS = 0o777
"""The mode bits that a replaced file keeps. A set-user-id bit is dropped, because it vouched for the old content."""
_REASONS = {
    errno.ENOENT: "does not exist; look for it with glob or ls",
    errno.ENOTDIR: "is not a directory, or goes through a file; read a file with read_file",
    errno.EISDIR: "is a directory, not a file",
    errno.EACCES: "is not accessible: permission denied",
    errno.EPERM: "is not accessible: permission denied",
    errno.ENAMETOOLONG: "has a name that is too long for the file system",
    errno.ELOOP: "was replaced by a link during the operation; try again",
    errno.ENOSPC: "cannot be written: the disk is full",
    errno.EROFS: "cannot be written: the disk is read-only",
}
_numbers = itertools.count()


def stat_location(location: FileLocation) -> os.stat_result:
    """Return the status of a location without following a link. Raises `OSError`."""
    return os.stat(location.name, dir_fd=location.directory, follow_symlinks=False)


def stat_name(name: str, directory: int) -> os.stat_result | None:
    """Return the status of a name in an open directory, None if it does not exist (any more)."""
    try:
        return os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return None


def open_file(location: FileLocation, path: str | os.PathLike[str]) -> int:
    """Open a regular file for reading and return its descriptor. `path` is named in errors.

    The type is checked before the file is opened, because opening a device can have effects, and again afterwards,
    because the file may have been replaced in between. Raises `OSError` and `WorkspaceError`.
    """
    _require_regular_file(path, stat_location(location))
    descriptor = os.open(location.name, _READ, dir_fd=location.directory)
    try:
        _require_regular_file(path, os.fstat(descriptor))
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def replace_file(location: FileLocation, data: bytes, before: os.stat_result | None) -> None:
    """Write `data` to a new file beside `location` and rename it into place, so that a file is never half written.

    `before` is the status of the file that is replaced. Raises `OSError` and removes the new file then.
    """
    descriptor, temporary = _create_temporary(location, 0o666 if before is None else 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            if before is not None:
                _copy_ownership(descriptor, before)
            os.fsync(descriptor)
        os.rename(temporary, location.name, src_dir_fd=location.directory, dst_dir_fd=location.directory)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(temporary, dir_fd=location.directory)
        raise


def describe_type(known: os.stat_result) -> str:
    """Return the type of a file as words for an error message, for example "a directory"."""
    names = {"directory": "a directory", "symlink": "a link", "other": "a pipe, a socket or a device"}
    return names.get(kind_of_mode(known.st_mode), "a file")


def workspace_error(path: str | os.PathLike[str], error: OSError) -> WorkspaceError:
    """Return an error of the system as a `WorkspaceError` with a sentence for the model."""
    reason = _REASONS.get(error.errno or 0, f"cannot be used: {error.strerror}")
    return WorkspaceError(f"{shortened(os.fspath(path))} {reason}")


def _require_regular_file(path: str | os.PathLike[str], known: os.stat_result) -> None:
    if stat.S_ISLNK(known.st_mode):
        raise OSError(errno.ELOOP, "a link")
    if not stat.S_ISREG(known.st_mode):
        raise WorkspaceError(
            f"{shortened(os.fspath(path))} is {describe_type(known)}, not a file; only regular files can be read"
        )


def _create_temporary(location: FileLocation, mode: int) -> tuple[int, str]:
    """Create an empty file in the same directory; return its descriptor and name. The umask applies to `mode`."""
    while True:
        name = f".agent-loop-{os.getpid()}-{next(_numbers)}.tmp"
        with suppress(FileExistsError):
            return os.open(name, _CREATE, mode, dir_fd=location.directory), name


def _copy_ownership(descriptor: int, before: os.stat_result) -> None:
    """Set the permissions of the replaced file, and its owner where the process is allowed to."""
    with suppress(PermissionError):
        os.fchown(descriptor, before.st_uid, before.st_gid)
    os.fchmod(descriptor, stat.S_IMODE(before.st_mode) & _KEPT_PERMISSIONS)
