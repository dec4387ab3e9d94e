"""The index of a git repository as a file: adapt it to a copy of the working tree without a process.

An entry records time, size and inode of its file. In a copy they differ, and git would read all files again. Reference:
gitformat-index(5).
"""

import hashlib
import os
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

_HEADER = struct.Struct(">4sII")
_STATE = struct.Struct(">10I")  # ctime, ctime ns, mtime, mtime ns, dev, ino, mode, uid, gid, size
_FLAGS = struct.Struct(">H")
_ASSUME_VALID = 0x8000
_EXTENDED = 0x4000
_GITLINK = 0o160000
_MASK = 0xFFFFFFFF
_NANOSECONDS = 1_000_000_000
_MODE = 6  # position in the state
_SUPPORTED = (2, 3)

FileState = tuple[int, ...]
"""The fields of an entry about its file, without its mode."""


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """One entry of an index."""

    start: int
    end: int
    path: bytes
    mode: int
    state: FileState


def state_of_file(path: bytes) -> FileState | None:
    """Return the state of a file as an entry records it; None if there is no such file."""
    try:
        found = os.lstat(path)
    except OSError:
        return None
    times = (*divmod(found.st_ctime_ns, _NANOSECONDS), *divmod(found.st_mtime_ns, _NANOSECONDS))
    numbers = (*times, found.st_dev, found.st_ino, found.st_uid, found.st_gid, found.st_size)
    return tuple(number & _MASK for number in numbers)


class IndexFile:
    """The content of an index of version 2 or 3 (`git update-index --index-version 2`)."""

    def __init__(self, content: bytes) -> None:
        """Parse. Raises `ValueError` for another version and for content that is not an index."""
        self._content = content
        magic, version, count = _HEADER.unpack_from(content)
        if magic != b"DIRC" or version not in _SUPPORTED:
            raise ValueError(f"an index of version {version} is not supported")
        for size, name in ((20, "sha1"), (32, "sha256")):
            if content[-size:] in {hashlib.new(name, content[:-size], usedforsecurity=False).digest(), bytes(size)}:
                self._hash, self._id_size = name, size
                break
        else:
            raise ValueError("the checksum of the index is wrong")
        self.entries = tuple(self._read(count))

    def _read(self, count: int) -> Iterator[IndexEntry]:
        position = _HEADER.size
        for _ in range(count):
            state = _STATE.unpack_from(self._content, position)
            flags_at = position + _STATE.size + self._id_size
            (flags,) = _FLAGS.unpack_from(self._content, flags_at)
            name_at = flags_at + (4 if flags & _EXTENDED else 2)
            name_end = self._content.index(b"\0", name_at)
            end = position + (name_end - position + 8) // 8 * 8
            path = self._content[name_at:name_end]
            yield IndexEntry(position, end, path, state[_MODE], (*state[:_MODE], *state[_MODE + 1 :]))
            position = end

    def with_states(self, state_of: Callable[[IndexEntry], FileState | None]) -> bytes:
        """Return the index with the state of each file replaced; None: git has to read the file."""
        content = bytearray(self._content)
        for entry in self.entries:
            state = state_of(entry) or (0,) * (_MODE + 3)
            _STATE.pack_into(content, entry.start, *state[:_MODE], entry.mode, *state[_MODE:])
        return self._sealed(content)

    def for_snapshots(self) -> bytes:
        """Return the index for snapshots: git reads each file again; submodules are ordinary directories."""
        kept = bytearray()
        count = 0
        for entry in self.entries:
            if entry.mode == _GITLINK:
                continue
            one = bytearray(self._content[entry.start : entry.end])
            _STATE.pack_into(one, 0, *(0,) * _MODE, entry.mode, *(0,) * 3)
            flags_at = _STATE.size + self._id_size
            (flags,) = _FLAGS.unpack_from(one, flags_at)
            _FLAGS.pack_into(one, flags_at, flags & ~_ASSUME_VALID)
            kept += one
            count += 1
        magic, version, _ = _HEADER.unpack_from(self._content)
        return self._sealed(bytearray(_HEADER.pack(magic, version, count)) + kept + bytes(self._id_size))

    def _sealed(self, content: bytearray) -> bytes:
        body = bytes(content[: -self._id_size])
        return body + hashlib.new(self._hash, body, usedforsecurity=False).digest()


def write_index(path: Path, content: bytes, times_of: Path) -> None:
    """Write an index with the time of another one: git decides by it which files it reads. Raises `OSError`."""
    path.write_bytes(content)
    found = times_of.stat()
    os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns))


def adapt_index(source: Path, target: Path, old_top: Path, new_top: Path) -> None:
    """Write an index for a copy of a working tree: what was unchanged since the index was written, still is.

    Args:
        source: The index.
        target: The index to write; may be the same.
        old_top: The working tree of the index.
        new_top: The copy.

    Raises:
        OSError: A file cannot be read or written.
        ValueError: The index has an unsupported format.
    """
    index = IndexFile(source.read_bytes())
    old, new = (os.fsencode(top) + b"/" for top in (old_top, new_top))

    def state_of(entry: IndexEntry) -> FileState | None:
        return state_of_file(new + entry.path) if state_of_file(old + entry.path) == entry.state else None

    content = index.with_states(state_of)
    write_index(target, content, source)
