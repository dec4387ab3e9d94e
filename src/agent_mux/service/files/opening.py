"""Opening files below a directory, component by component, without following symbolic links.

Each component is opened relative to the one before, so that a directory that is replaced by a link meanwhile leads
nowhere else. Only regular files are opened: a FIFO would block, and a device may do anything.
"""

import contextlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from agent_mux.errors import AgentMuxError, FieldError, ValidationError

LONGEST_PATH = 4096  # characters
_DIRECTORY = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
"""With `O_PATH`, a directory that may be entered does not have to be readable."""
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def checked_path(path: str) -> PurePosixPath:
    """Return a path relative to a directory. Raises `ValidationError` for one that is empty or leads outside."""
    pure = PurePosixPath(path)
    if len(path) > LONGEST_PATH or not pure.parts or pure.is_absolute() or ".." in pure.parts:
        allowed = "a path relative to the working directory of the run, without `..`"
        raise ValidationError([FieldError("path", path[:LONGEST_PATH], allowed)])
    return pure


@contextlib.contextmanager
def opened_file(root: Path, path: PurePosixPath) -> Iterator[tuple[int, int]]:
    """Open a regular file below `root` and provide its descriptor and its size.

    `root` is a path without symbolic links; it is opened in the same way. Raises NOT_FOUND.
    """
    with contextlib.ExitStack() as opened:
        try:
            directory = _open(opened, str(root.anchor), _DIRECTORY)
            for name in (*root.parts[1:], *path.parts[:-1]):
                directory = _open(opened, name, _DIRECTORY, directory)
            before = os.stat(path.name, dir_fd=directory, follow_symlinks=False)
            if not stat.S_ISREG(before.st_mode):
                raise _not_found(path, _kind(before.st_mode))
            descriptor = _open(opened, path.name, _FILE, directory)
            status = os.fstat(descriptor)
        except (OSError, ValueError) as error:
            raise _not_found(path, getattr(error, "strerror", None) or str(error)) from error
        if not stat.S_ISREG(status.st_mode):
            raise _not_found(path, _kind(status.st_mode))
        yield descriptor, status.st_size


def read_file(root: Path, path: str, offset: int, limit: int) -> tuple[bytes, int]:
    """Return a part of a file below a directory, and the size of the file. Blocking.

    Raises NOT_FOUND, and `ValidationError` for a path that leads outside.
    """
    with opened_file(root, checked_path(path)) as (descriptor, size):
        parts: list[bytes] = []
        while limit and (part := os.pread(descriptor, min(limit, 1 << 20), offset)):
            parts.append(part)
            offset, limit = offset + len(part), limit - len(part)
        return b"".join(parts), size


def _open(opened: contextlib.ExitStack, name: str, flags: int, directory: int | None = None) -> int:
    descriptor = os.open(name, flags, dir_fd=directory)
    opened.callback(os.close, descriptor)
    return descriptor


def _kind(mode: int) -> str:
    if stat.S_ISLNK(mode):
        return "a symbolic link, which is not followed"
    return "a directory" if stat.S_ISDIR(mode) else "no regular file"


def _not_found(path: PurePosixPath, reason: str) -> AgentMuxError:
    return AgentMuxError("NOT_FOUND", f"cannot read {path} in the working directory of the run: {reason}")
