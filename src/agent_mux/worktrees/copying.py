"""Copy files and directories: by sharing their blocks where the file system can (reflinks), else by their content."""

import contextlib
import fcntl
import os
import shutil
import stat
from collections.abc import Callable, Sequence
from pathlib import Path

from agent_mux.errors import AgentMuxError

_FICLONE = 0x40049409
"""The request of `ioctl` that lets a file share the blocks of another one (Linux: btrfs, XFS, bcachefs)."""


class FileCopier:
    """Copies entries from below one directory to the same place below another one. All methods block."""

    def __init__(
        self,
        source: Path,
        target: Path,
        is_wanted: Callable[[], bool] = lambda: True,
        excluded: Sequence[Path] = (),
    ) -> None:
        """Prepare copies.

        Args:
            source: The directory to copy from.
            target: The directory to copy to.
            is_wanted: Polled; `copy` raises ABORTED once it returns False.
            excluded: Directories in the source that are not copied.
        """
        self._source = source
        self._top = os.path.realpath(source)
        self._target = target
        self._is_wanted = is_wanted
        self._excluded = tuple(os.path.realpath(path) for path in excluded)
        self.copied: list[str] = []
        """The entries that were copied, as they were given to `copy`."""
        self.shared: list[str] = []
        """Symbolic links to places outside of the source; both directories share what is there."""
        self.skipped: list[str] = []
        """Files that vanished or cannot be read, and what is not a file: sockets, pipes, devices."""

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
        if self._is_excluded(path):
            return False
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

    def _is_excluded(self, path: str) -> bool:
        entry = f"{self._top}{os.sep}{path}"
        return any(entry == one or entry.startswith(one + os.sep) for one in self._excluded)

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


def copy_tree(source: str, target: str, is_wanted: Callable[[], bool] = lambda: True) -> None:
    """Copy a directory with all its content to a place where nothing is: files, links, modes and times of files.

    Links that lead into the source lead into the copy. What is not a file is left out. Raises `AgentMuxError` (ABORTED)
    and `OSError`.
    """
    _copy_content(source, target, source.rstrip(os.sep) + os.sep, is_wanted)


def _copy_content(source: str, target: str, top: str, is_wanted: Callable[[], bool]) -> None:
    if not is_wanted():
        raise AgentMuxError("ABORTED", "the copy is no longer wanted")
    os.mkdir(target, 0o700)  # noqa: PTH102  # strings: this is called for every directory of a workspace
    with os.scandir(source) as entries:
        for entry in entries:
            copy = f"{target}/{entry.name}"
            if entry.is_symlink():
                destination = os.readlink(entry.path)  # noqa: PTH115
                if destination.startswith(top):
                    destination = os.path.relpath(destination, source)
                os.symlink(destination, copy)  # noqa: PTH211
            elif entry.is_dir():
                _copy_content(entry.path, copy, top, is_wanted)
            elif entry.is_file():
                copy_file(entry.path, copy)
    os.chmod(target, stat.S_IMODE(os.stat(source).st_mode) | stat.S_IRWXU)  # noqa: PTH101, PTH116


def copy_file(source: Path | str, target: Path | str) -> bool:
    """Copy a regular file with its mode and its times. Returns False if it cannot be read or is not a regular file.

    Raises `OSError` when the target cannot be written.
    """
    try:
        descriptor = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    with open(descriptor, "rb", buffering=0) as reading:  # noqa: PTH123  # an open descriptor
        state = os.fstat(descriptor)
        if not stat.S_ISREG(state.st_mode):
            return False
        with open(target, "xb", buffering=0) as writing:  # noqa: PTH123  # a path or a string
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
