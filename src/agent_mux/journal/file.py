r"""The journal of a run: its records in one append-only file, which is also its recording.

Each record is `<letter> <microseconds> <length>\n<payload>\n`, written with one system call, so that a crash of this
process loses nothing that was written and a crash of the machine tears the last record at most. Readable with `less`.
The file is 0600 in a directory 0700: it holds prompts.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import msgspec

from agent_mux.errors import AgentMuxError
from agent_mux.journal.records import Header, Kind, Record, decode_header, encode

READ_SIZE = 1 << 20
LONGEST_HEAD = 64  # letter, two numbers below 2**63 and their separators
_KINDS = {kind.value: kind for kind in Kind}


class JournalWriter:
    """Appends records. Raises `OSError` from `append` when the disk refuses; the runner decides what that means."""

    def __init__(self, path: Path, header: Header) -> None:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.path = path
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
        self._descriptor: int | None = os.open(path, flags, 0o600)
        try:
            self.append(Record(Kind.HEADER, 0, encode(header)))
        except OSError:
            self.close()
            path.unlink(missing_ok=True)  # a journal without a header is none
            raise

    def append(self, record: Record) -> None:
        """Write one record, whole."""
        if self._descriptor is None:
            return
        payload = record.payload
        head = b"%b %d %d\n" % (record.kind.value, record.at, len(payload))
        wanted = len(head) + len(payload) + 1
        written = os.writev(self._descriptor, (head, payload, b"\n"))
        if written < wanted:  # interrupted or nearly full: the rest, or the error that says why not
            rest = memoryview(head + payload + b"\n")[written:]
            while rest:
                rest = rest[os.write(self._descriptor, rest) :]

    @property
    def is_in_place(self) -> bool:
        """The file is where it was made: nobody removed it, or put another in its place."""
        try:
            return self._descriptor is not None and os.path.samestat(self.path.stat(), os.fstat(self._descriptor))
        except OSError:
            return False

    @property
    def open_file(self) -> Path:
        """The file itself, wherever its name went. As long as this writer is not closed."""
        return Path(f"/dev/fd/{self._descriptor}")

    def close(self) -> None:
        """No more records."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)


class JournalReader:
    """Reads records, also while they are still being written. A torn last record is left for the next `read`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._position = 0
        self.header = self._read_header()

    @property
    def position(self) -> int:
        """Bytes that were read: where the last whole record ends."""
        return self._position

    def _read_header(self) -> Header:
        try:
            first = next(self.read(), None)
            if first is None or first.kind is not Kind.HEADER:
                raise AgentMuxError("PARSE_ERROR", f"{self.path} is not a journal: it does not begin with a header")
            return decode_header(first.payload)
        except msgspec.MsgspecError as error:
            raise AgentMuxError("PARSE_ERROR", f"{self.path} cannot be read as a journal: {error}") from error

    def read(self) -> Iterator[Record]:
        """The complete records since the last call, one by one. Raises `AgentMuxError` where the file is damaged."""
        with self.path.open("rb") as file:
            file.seek(self._position)
            while (head := file.readline(LONGEST_HEAD)).endswith(b"\n"):
                kind, at, length = self._parse_head(head)
                payload = file.read(length + 1)
                if len(payload) <= length:
                    return
                if not payload.endswith(b"\n"):
                    raise self._damaged()
                self._position += len(head) + length + 1
                yield Record(kind, at, payload[:-1])
            if len(head) >= LONGEST_HEAD:
                raise self._damaged()

    def _parse_head(self, head: bytes) -> tuple[Kind, int, int]:
        letter, _, rest = head[:-1].partition(b" ")
        at, _, length = rest.partition(b" ")
        if letter not in _KINDS or not at.isdigit() or not length.isdigit():
            raise self._damaged()
        return _KINDS[letter], int(at), int(length)

    def _damaged(self) -> AgentMuxError:
        return AgentMuxError("PARSE_ERROR", f"{self.path} is damaged at byte {self._position}: no record begins there")
