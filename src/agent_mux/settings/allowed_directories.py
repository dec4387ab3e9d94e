"""Directories that runs may work in: an allow-list, for who starts runs on behalf of somebody else.

A path counts as what it really is: symbolic links and `..` are resolved before it is compared, and then the directory
is opened step by step from its root, where no step may be a link. So a link that somebody puts there between the
comparison and the opening is noticed. What is put there after that is not: who can write inside of a root can replace
its directories at any time. The list says where an agent begins to work; it does not lock the agent in.
"""

import os
import stat
from collections.abc import Sequence
from pathlib import Path

from agent_mux.errors import FieldError, ValidationError

_LOOK = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC | getattr(os, "O_NONBLOCK", 0)
_SHOWN = 200  # characters of a path in an error


class AllowedDirectories:
    """The directories that are allowed, with all that is in them."""

    def __init__(self, directories: Sequence[str | os.PathLike[str]]) -> None:
        """Resolve them, once: a link among them is followed now and never again.

        Raises:
            ValidationError: There is none, or one is not an existing directory.
        """
        if not directories:
            raise ValidationError([FieldError("roots", [], "at least one directory")])
        self.directories = tuple(_root(directory) for directory in directories)

    @property
    def default(self) -> Path:
        """The first one: where relative paths begin, and where a run works that names no directory."""
        return self.directories[0]

    def holds(self, path: str | os.PathLike[str]) -> bool:
        """The path is in one of them, whatever it is, and also where nothing is there yet."""
        try:
            return self._place_of(self._resolved(path)) is not None
        except (OSError, ValueError):
            return False

    def directory(self, path: str | os.PathLike[str] | None = None) -> Path:
        """The real path of a directory that is allowed.

        Args:
            path: Absolute, or relative to the first root; nothing in it is expanded. None: the first root.

        Raises:
            ValidationError: It is outside of the roots, no directory, or not there. What is outside is answered in
                the same way whether it is there or not.
        """
        try:
            real = self._resolved(self.default if path is None else path)
        except (OSError, ValueError) as error:
            raise _refused(path, "a path that can be resolved") from error
        root = self._place_of(real)
        if root is None:
            raise _refused(path, "a directory in " + ", ".join(map(str, self.directories)))
        try:
            _walk(root, real)
        except (OSError, ValueError) as error:
            raise _refused(path, "an existing directory that can be entered") from error
        return real

    def _resolved(self, path: str | os.PathLike[str]) -> Path:
        return Path(os.path.realpath(self.default / path))

    def _place_of(self, real: Path) -> Path | None:
        return next((root for root in self.directories if real.is_relative_to(root)), None)


def _root(directory: str | os.PathLike[str]) -> Path:
    try:
        real = Path(os.path.realpath(directory))
        is_directory = real.is_dir()
    except (OSError, ValueError):
        is_directory = False
    if not is_directory:
        raise _refused(directory, "an existing directory", "roots")
    return real


def _walk(root: Path, real: Path) -> None:
    """Open each directory on the way from the root, none of them through a link. Raises `OSError`."""
    descriptor = os.open(root, _LOOK)
    try:
        for name in real.relative_to(root).parts:
            inner = os.open(name, _LOOK, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = inner
        _same(os.fstat(descriptor), real)
    finally:
        os.close(descriptor)


def _same(opened: os.stat_result, real: Path) -> None:
    """What was opened is what the path leads to, all links followed. Raises `NotADirectoryError`."""
    now = real.stat()
    if (opened.st_dev, opened.st_ino) != (now.st_dev, now.st_ino) or not stat.S_ISDIR(now.st_mode):
        raise NotADirectoryError(f"{real} was replaced")


def _refused(path: str | os.PathLike[str] | None, allowed: str, field: str = "cwd") -> ValidationError:
    shown = os.fsdecode(path) if path is not None else None
    return ValidationError([FieldError(field, shown if shown is None else shown[:_SHOWN], allowed)])
