"""Open files below a directory, component by component, without following symbolic links.

Each component is opened relative to the one before, so that a directory that is replaced by a link meanwhile leads
nowhere else. Only regular files are opened: a FIFO would block, and a device may do anything.
"""

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from pathlib import PurePath

_DIRECTORY = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
"""With `O_PATH`, a directory that may be entered does not have to be readable."""
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@contextlib.contextmanager
def open_regular_file(root: PurePath, path: PurePath) -> Iterator[tuple[int, int]]:
    """Open a regular file below a directory and provide its descriptor and its size in bytes.

    Args:
        root: An absolute path without symbolic links; it is opened in the same way.
        path: A path relative to it, without `..`.

    Raises:
        OSError: A component is missing, is a symbolic link, or is not a regular file.
        ValueError: A component contains a null character.
    """
    with contextlib.ExitStack() as opened:
        directory = _open(opened, root.anchor, _DIRECTORY)
        for name in (*root.parts[1:], *path.parts[:-1]):
            directory = _open(opened, name, _DIRECTORY, directory)
        _check_kind(os.stat(path.name or ".", dir_fd=directory, follow_symlinks=False).st_mode)
        descriptor = _open(opened, path.name, _FILE, directory)
        status = os.fstat(descriptor)
        _check_kind(status.st_mode)  # another file may have taken its place
        yield descriptor, status.st_size


def _open(opened: contextlib.ExitStack, name: str, flags: int, directory: int | None = None) -> int:
    descriptor = os.open(name, flags, dir_fd=directory)
    opened.callback(os.close, descriptor)
    return descriptor


def _check_kind(mode: int) -> None:
    if stat.S_ISLNK(mode):
        raise OSError(errno.ELOOP, "a symbolic link, which is not followed")
    if stat.S_ISDIR(mode):
        raise OSError(errno.EISDIR, "a directory")
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "no regular file")
