"""What is known of one thing in a directory."""

import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

EntryKind = Literal["file", "directory", "symlink", "other"]
Parts = tuple[str, ...]
"""Names from a root downwards; empty: the root itself."""

_KINDS: tuple[tuple[int, EntryKind], ...] = (
    (stat.S_IFREG, "file"),
    (stat.S_IFDIR, "directory"),
    (stat.S_IFLNK, "symlink"),
)


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing, itself and not what it links to."""

    name: str
    """As `Workspace.relative` says it; the root is "."."""
    parts: Parts
    kind: EntryKind
    """"other": a pipe, a socket or a device, which is never opened."""
    size: int
    """Bytes."""
    modified_ns: int


@dataclass(frozen=True, slots=True)
class FileContent:
    """A file that was read whole."""

    name: str
    path: Path
    """Absolute, without links."""
    data: bytes
    modified_ns: int


@dataclass(frozen=True, slots=True)
class Written:
    """What came of a write."""

    name: str
    created: bool
    """There was no such file."""


def kind_of_mode(mode: int) -> EntryKind:
    """What `st_mode` says."""
    return next((kind for bits, kind in _KINDS if stat.S_IFMT(mode) == bits), "other")


def printable(name: str) -> str:
    """A name from the disk as text that can be stored and sent: bytes that are no UTF-8 become escapes."""
    return name.encode("utf-8", "backslashreplace").decode()


def by_bytes(name: str) -> bytes:
    """The order in which names are told: that of ripgrep."""
    return os.fsencode(name)
