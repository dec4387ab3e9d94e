"""Copy files and directories: by sharing their blocks where the file system can (reflinks), else by their content."""

import contextlib
import fcntl
import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path

from agent_mux.errors import AgentMuxError

_FICLONE = 0x40049409
"""The request of `ioctl` that lets a file share the blocks of another one (Linux: btrfs, XFS, bcachefs)."""


class FileCopier:
    """Copies entries from below one directory to the same place below another one. All methods block."""

    def __init__(self, source: Path, target: Path, is_wanted: Callable[[], bool] = lambda: True) -> None:
        """Prepare copies. `is_wanted` is polled; `copy` raises ABORTED once it returns False."""
        self._source = source
        self._top = os.path.realpath(source)
        self._target = target
        self._is_wanted = is_wanted
        self.copied: list[str] = []
        """The entries that were copied, as they were given to `copy`."""
        self.shared: list[str] = []
        """Symbolic links to places outside of the source; both directories share what is there."""
        self.skipped: list[str] = []
        """Files that vanished or cannot be read, and what is no file: sockets, pipes, devices."""

    def copy(self, path: str) -> None:
        """Copy a file, a link or a directory with all its content; `path` is relative, with `/`.

        An existing file is replaced. Raises `AgentMuxError` (ABORTED), and `OSError` when the target cannot be written.
        """
        if self._copy_entry(path.rstrip("/")):
            self.copied.append(path)

    def _copy_entry(self, path: str) -> bool:
        if not self._is_wanted():
            raise AgentMuxError("ABORTED", "the copy is no longer wanted")
        source, target = self._source / path, self._target / path
        try:
            mode = source.lstat().st_mode
        except OSError:
            self.skipped.append(path)
            return False
        if stat.S_ISDIR(mode):
            return self._copy_directory(path, stat.S_IMODE(mode))
        target.parent.mkdir(parents=True, exist_ok=True)
        _remove(target)
        if stat.S_ISLNK(mode):
            self._copy_link(path)
            return True
        if not stat.S_ISREG(mode) or not copy_file(source, target):
            self.skipped.append(path)
            return False
        return True

    def _copy_directory(self, path: str, mode: int) -> bool:
        target = self._target / path
        if target.is_symlink() or (target.exists() and not target.is_dir()):
            target.unlink()
        target.mkdir(parents=True, exist_ok=True)
        try:
            names = sorted(os.listdir(self._source / path))  # noqa: PTH208  # names, and not many paths
        except OSError:
            self.skipped.append(path)
            return False
        for name in names:
            self._copy_entry(f"{path}/{name}")
        target.chmod(mode | stat.S_IRWXU)  # so that it can be removed
        return True

    def _copy_link(self, path: str) -> None:
        """Copy a symbolic link. One that leads outside keeps its destination, which both directories share."""
        link = self._source / path
        destination = str(link.readlink())
        real = os.path.realpath(link)
        if real != self._top and not real.startswith(self._top + os.sep):
            self.shared.append(path)
            destination = real
        elif os.path.isabs(destination):  # noqa: PTH117  # inside: the copy leads to the copy
            destination = os.path.relpath(real, os.path.realpath(link.parent))
        (self._target / path).symlink_to(destination)


def copy_file(source: Path, target: Path) -> bool:
    """Copy a regular file with its mode and its times. Returns False if it cannot be read or is no regular file.

    Raises `OSError` when the target cannot be written.
    """
    try:
        descriptor = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    with open(descriptor, "rb", closefd=True) as reading:  # noqa: PTH123  # an open descriptor
        state = os.fstat(descriptor)
        if not stat.S_ISREG(state.st_mode):
            return False
        with target.open("xb") as writing:
            if not _shares_blocks(reading.fileno(), writing.fileno()):
                shutil.copyfileobj(reading, writing, 1 << 20)
            os.fchmod(writing.fileno(), stat.S_IMODE(state.st_mode))
        os.utime(target, ns=(state.st_atime_ns, state.st_mtime_ns))
    return True


def _shares_blocks(reading: int, writing: int) -> bool:
    try:
        fcntl.ioctl(writing, _FICLONE, reading)
    except OSError:
        return False
    return True


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
        return
    with contextlib.suppress(FileNotFoundError):
        path.unlink()
