r"""The journal of a run: an append-only file with the run's records, which is also its recording.

Each record is `<letter> <microseconds> <length>\n<payload>\n`, written with one system call: a crash of this process
loses nothing that was written, and a crash of the machine truncates at most the last record. The file is readable with
`less`. It has mode 0600 in a directory of mode 0700, because it contains prompts.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

from agent_mux._util.files import make_directory
from agent_mux.errors import AgentMuxError
from agent_mux.journal.records import Header, Kind, Record, decode_header, encode

READ_SIZE = 1 << 20
MAX_HEAD_SIZE = 64  # bytes of a letter, two numbers below 2**63 and their separators
_KINDS = {kind.value: kind for kind in Kind}


class JournalWriter:
    """Appends records to a new journal file.

    `append` raises `OSError` if the disk refuses; the run recorder then continues without a journal.
    """

    def __init__(self, path: Path, header: Header) -> None:
        make_directory(path.parent)
        self.path = path
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
        self._descriptor: int | None = os.open(path, flags, 0o600)
        with suppress(OSError):  # a file system without locks; see `is_being_written`
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        try:
            self.append(Record(Kind.HEADER, 0, encode(header)))
        except OSError:
            self.close()
            path.unlink(missing_ok=True)  # a file without a header is not a journal
            raise

    def append(self, record: Record) -> None:
        """Write one complete record; do nothing after `close`."""
        if self._descriptor is None:
            return
        payload = record.payload
        head = b"%b %d %d\n" % (record.kind.value, record.at, len(payload))
        size = len(head) + len(payload) + 1
        written = os.writev(self._descriptor, (head, payload, b"\n"))
        if written < size:  # interrupted, or the disk is nearly full: write the rest, or raise the error
            rest = memoryview(head + payload + b"\n")[written:]
            while rest:
                rest = rest[os.write(self._descriptor, rest) :]

    @property
    def is_in_place(self) -> bool:
        """Whether the path still refers to the written file: it was neither removed nor replaced."""
        try:
            return self._descriptor is not None and os.path.samestat(self.path.stat(), os.fstat(self._descriptor))
        except OSError:
            return False

    @property
    def descriptor_path(self) -> Path:
        """Path of the file by its descriptor, valid until `close`, even if the file was renamed or removed."""
        return Path(f"/dev/fd/{self._descriptor}")

    def close(self) -> None:
        """Close the file; later calls of `append` do nothing."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)


def is_being_written(path: Path) -> bool:
    """Return whether a living process writes this journal: it holds a lock, which ends with the process.

    False for a missing file, and where the file system has no locks.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return False


class JournalReader:
    """Reads records, also while they are being written. A truncated last record is left for the next `read`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._position = 0
        self.header = self._read_header()

    @property
    def position(self) -> int:
        """Number of bytes that were read: where the last complete record ends."""
        return self._position

    def _read_header(self) -> Header:
        try:
            first = next(self.read(), None)
            if first is None or first.kind is not Kind.HEADER:
                raise AgentMuxError("PARSE_ERROR", f"{self.path} is not a journal: its first record is not a header")
            return decode_header(first.payload)
        except msgspec.MsgspecError as error:
            raise AgentMuxError("PARSE_ERROR", f"{self.path} cannot be read as a journal: {error}") from error

    def read(self) -> Iterator[Record]:
        """Yield the complete records since the last call. Raises PARSE_ERROR where the file is damaged."""
        with self.path.open("rb") as file:
            file.seek(self._position)
            while (head := file.readline(MAX_HEAD_SIZE)).endswith(b"\n"):
                kind, at, length = self._parse_head(head)
                payload = file.read(length + 1)
                if len(payload) <= length:
                    return
                if not payload.endswith(b"\n"):
                    raise self._damage_error()
                self._position += len(head) + length + 1
                yield Record(kind, at, payload[:-1])
            if len(head) >= MAX_HEAD_SIZE:
                raise self._damage_error()

    def _parse_head(self, head: bytes) -> tuple[Kind, int, int]:
        letter, _, rest = head[:-1].partition(b" ")
        at, _, length = rest.partition(b" ")
        if letter not in _KINDS or not at.isdigit() or not length.isdigit():
            raise self._damage_error()
        return _KINDS[letter], int(at), int(length)

    def _damage_error(self) -> AgentMuxError:
        return AgentMuxError("PARSE_ERROR", f"{self.path} is damaged at byte {self._position}: no record begins there")
