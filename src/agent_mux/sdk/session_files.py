"""Read stored sessions from files of JSON lines, in bounded memory, with secrets hidden.

Agents store the output of their tools, including keys. Values with the format of a key and the secrets of this
process's environment are replaced by asterisks when a file is read.
"""

import fnmatch
import os
import re
import stat
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO

from msgspec.structs import replace

from agent_mux.redaction import Redactor, secret_values
from agent_mux.sdk.declarations import Declaration
from agent_mux.sdk.framing import LineFramer
from agent_mux.sdk.native_json import load_object
from agent_mux.sdk.sessions import FoundSession, ModelCalled, SessionEntry, UnreadableSessionError
from agent_mux.sdk.zstandard import open_compressed

READ_SIZE = 1 << 20  # bytes
EARLIEST, LATEST = 946_684_800_000, 4_102_444_800_000  # plausible times in milliseconds: the years 2000 to 2100
COMPRESSED = ".zst"
MAX_DAMAGED_LINES = 20  # a file is rejected if so many lines at its beginning are unreadable

LineParser = Callable[[dict[str, Any]], Iterable[SessionEntry]]
"""Returns the entries of a line, possibly none. Raises `UnreadableSessionError` if the file is not a session."""


class JsonLinesReader:
    """Reads a session from a file of JSON lines; implements `Cursor`.

    Damaged lines are skipped. An incomplete last line is read once the agent has completed it.
    """

    def __init__(self, path: Path, read_line: LineParser, at_end: Callable[[], Iterable[SessionEntry]] = tuple) -> None:
        """Read the file with `read_line`; `at_end` returns further entries whenever the end of the file is reached."""
        self._path = path
        self._read_line = read_line
        self._at_end = at_end
        self._position = 0
        self._framer = LineFramer()
        self._good_lines = 0
        self._damaged_lines = 0

    def read(self) -> Iterator[SessionEntry]:
        """Yield the entries of lines that were not read yet, see `Cursor.read`."""
        with open_session_file(self._path) as file:
            file.seek(self._position)
            while chunk := file.read(READ_SIZE):
                self._position += len(chunk)
                for line in self._framer.feed(chunk):
                    yield from self._line(line)
        if not self._good_lines and self._damaged_lines:
            raise UnreadableSessionError("it has no line that can be read")
        yield from self._at_end()

    def _line(self, line: bytes) -> Iterable[SessionEntry]:
        if not line or line.isspace():
            return ()
        native = load_object(redact_bytes(line))
        if native is None:
            self._damaged_lines += 1
            if not self._good_lines and self._damaged_lines >= MAX_DAMAGED_LINES:
                raise UnreadableSessionError(
                    f"none of its first {MAX_DAMAGED_LINES} lines belongs to a session of this agent"
                )
            return ()
        try:
            entries = list(self._read_line(native))
        except UnreadableSessionError:
            raise
        except Exception:  # noqa: BLE001  # a failing reader skips one line, not the whole session
            self._damaged_lines += 1
            return ()
        self._good_lines += 1
        return entries


class SubagentUsageReader:
    """Reads the usage of the sub-agents of a session, each of which has its own file."""

    def __init__(self, new_reader: Callable[[], LineParser]) -> None:
        self._new_reader = new_reader
        self._cursors: dict[Path, JsonLinesReader] = {}

    def read(self, paths: Iterable[Path]) -> Iterator[SessionEntry]:
        """Yield model calls that were not read yet, marked as calls of sub-agents."""
        for path in paths:
            if path not in self._cursors:
                self._cursors[path] = JsonLinesReader(path, self._new_reader())
            for at, fact in self._cursors[path].read():
                if isinstance(fact, ModelCalled):
                    yield SessionEntry(at, replace(fact, is_inside=True))


def read_json_objects(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects of a file, line by line; other lines are skipped."""
    framer = LineFramer()
    with open_session_file(path) as file:
        while chunk := file.read(READ_SIZE):
            for line in framer.feed(chunk):
                native = load_object(line)
                if native is not None:
                    yield native


def open_session_file(path: Path) -> BinaryIO:
    """Open a file of JSON lines, which some agents compress when it is old (suffix `.zst`)."""
    return open_compressed(path) if path.suffix == COMPRESSED else path.open("rb")


def find_session_files(root: Path, pattern: str) -> Iterator[FoundSession]:
    """Yield the files that match a pattern such as `*/*.jsonl`, without those that vanish or cannot be accessed."""
    return _matching_files(root, tuple(re.compile(fnmatch.translate(part)) for part in pattern.split("/")))


def _matching_files(directory: str | Path, patterns: tuple[re.Pattern[str], ...]) -> Iterator[FoundSession]:
    # There can be very many files: one `stat` for each matching name, and none for other names.
    pattern, *rest = patterns
    for entry in _list_directory(directory):
        if not pattern.match(entry.name):
            continue
        try:
            status = entry.stat()
        except OSError:
            continue
        if rest and stat.S_ISDIR(status.st_mode):
            yield from _matching_files(entry.path, tuple(rest))
        elif not rest and stat.S_ISREG(status.st_mode):
            yield FoundSession(Path(entry.path), "", status.st_size, status.st_mtime_ns)


def _list_directory(directory: str | Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(directory) as entries:
            return list(entries)
    except OSError:
        return []


def parse_timestamp(value: Any) -> int | None:
    """Parse a time given as ISO 8601 text or as milliseconds since the epoch; return milliseconds.

    None if the value is not a time or is implausible.
    """
    if isinstance(value, int | float) and not isinstance(value, bool):
        return int(value) if EARLIEST < value < LATEST else None
    if not isinstance(value, str):
        return None
    try:
        time = datetime.fromisoformat(value)
    except ValueError:
        return None
    milliseconds = round((time if time.tzinfo is not None else time.replace(tzinfo=UTC)).timestamp() * 1000)
    return milliseconds if EARLIEST < milliseconds < LATEST else None


@dataclass(frozen=True, slots=True, kw_only=True)
class RowTree(Declaration):
    """The tree that the rows of a file form by referring to their predecessors."""

    id: str
    """Field with the id of a row."""
    parent: str
    """Field with the id of the preceding row."""
    starts: Callable[[Mapping[str, Any]], bool]
    """Returns whether a row is a prompt, to which the following rows belong."""
    includes: Callable[[Mapping[str, Any]], bool] = bool
    """Returns whether a row is part of this tree; a file may contain the trees of sub-agents."""
    rewound: Callable[[Mapping[str, Any]], str | None] = lambda _: None
    """Returns the id of the row that this row makes the last of the conversation; empty: no row, None: it does not."""

    def abandoned_rows(self, path: Path) -> Collection[str]:
        """Return the ids of all rows whose prompt is not on the path from the last row to the first.

        Whole prompts are abandoned, not single rows: the results of parallel tool calls are branches too, but belong to
        the conversation.
        """
        parents: dict[str, str] = {}
        prompt_of: dict[str, str] = {}
        last = ""
        for row in read_json_objects(path):
            row_id, parent = row.get(self.id), row.get(self.parent)
            if isinstance(row_id, str) and row_id and self.includes(row):
                last = row_id
                parents[row_id] = parent if isinstance(parent, str) else ""
                prompt_of[row_id] = row_id if self.starts(row) else prompt_of.get(parents[row_id], "")
            elif (target := self.rewound(row)) is not None and (not target or target in parents):
                last = target
        kept = {""}
        while last in parents:
            kept.add(prompt_of[last])
            last = parents.pop(last)
        return {row_id for row_id, prompt in prompt_of.items() if prompt not in kept}


def redact_bytes(data: bytes) -> bytes:
    """Return the data with secrets replaced by asterisks, in the same length. JSON remains valid."""
    spans, _ = _environment_redactor().find_secrets(data)
    if not spans:  # nearly always
        return data
    # A new redactor each time, because it would keep the secrets to restore them.
    return Redactor().hide(data, spans)


def redact_to_text(data: bytes) -> str:
    """Return the data as text with secrets hidden; invalid UTF-8 becomes U+FFFD."""
    return redact_bytes(data).decode("utf-8", "replace")


@cache
def _environment_redactor() -> Redactor:
    return Redactor(secret_values(os.environ))
