"""Values that describe files and directory entries, and how file names are printed and sorted."""

import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

EntryKind = Literal["file", "directory", "symlink", "other"]
Parts = tuple[str, ...]
"""Path components below a root. Empty for the root itself."""

_KINDS: tuple[tuple[int, EntryKind], ...] = (
    (stat.S_IFREG, "file"),
    (stat.S_IFDIR, "directory"),
    (stat.S_IFLNK, "symlink"),
)


@dataclass(frozen=True, slots=True)
class DirectoryEntry:
    """A file, directory or symbolic link; links are described themselves and not followed."""

    name: str
    """The path as `Workspace.relative` returns it; "." for the root."""
    parts: Parts
    kind: EntryKind
    """The file type. "other" is a pipe, a socket or a device, which is never opened."""
    size: int
    """The size in bytes."""
    modified_ns: int


@dataclass(frozen=True, slots=True)
class FileContent:
    """The complete content of a file at the time of a read."""

    name: str
    path: Path
    """The absolute path, with symbolic links resolved."""
    data: bytes
    modified_ns: int


@dataclass(frozen=True, slots=True)
class WriteResult:
    """The file that a write created or replaced."""

    name: str
    created: bool
    """Whether the file did not exist before."""


def kind_of_mode(mode: int) -> EntryKind:
    """Return the kind of entry that `st_mode` describes."""
    return next((kind for bits, kind in _KINDS if stat.S_IFMT(mode) == bits), "other")


def printable(name: str) -> str:
    """Return a file name as text that can be stored and sent, with bytes that are not UTF-8 as backslash escapes."""
    return name.encode("utf-8", "backslashreplace").decode()


def by_bytes(name: str) -> bytes:
    """Return the sort key of a file name: its bytes, which is the order of ripgrep."""
    return os.fsencode(name)


PathLike = str | os.PathLike[str]
