"""Read stored sessions from files of JSON lines, in bounded memory, with their secrets hidden.

Agents write down the output of their tools, keys included. Values that have the shape of a key and the secrets of this
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
from typing import Any

from msgspec.structs import replace

from agent_mux.redaction import Redactor, secret_values
from agent_mux.sdk.framing import LineFramer
from agent_mux.sdk.native_json import load_object
from agent_mux.sdk.sessions import Entry, Found, ModelCalled, UnreadableError

READ_SIZE = 1 << 20
NOT_READ = "none of its first {} lines is one of this agent's sessions"
EARLIEST, LATEST = 946_684_800_000, 4_102_444_800_000  # milliseconds: the years 2000 and 2100
LOOK_AT = 20  # lines that may be damaged before a file is taken for something else

LineReader = Callable[[dict[str, Any]], Iterable[Entry]]
"""Tells what a line says: nothing, where it says nothing. Raises `UnreadableError` where it is no line of a session."""


class LineCursor:
    """Reads a file of JSON lines. A line that is damaged is passed over; a last one may still be written."""

    def __init__(self, path: Path, read_line: LineReader, at_end: Callable[[], Iterable[Entry]] = tuple) -> None:
        """`at_end`: what is to be said where the file ends, each time that it is read so far."""
        self._path = path
        self._read_line = read_line
        self._at_end = at_end
        self._position = 0
        self._framer = LineFramer()
        self._good = 0
        self._damaged = 0

    def read(self) -> Iterator[Entry]:
        """See `Cursor.read`."""
        with self._path.open("rb") as file:
            file.seek(self._position)
            while chunk := file.read(READ_SIZE):
                self._position += len(chunk)
                for line in self._framer.feed(chunk):
                    yield from self._line(line)
        if not self._good and self._damaged:
            raise UnreadableError("it has no line that can be read")
        yield from self._at_end()

    def _line(self, line: bytes) -> Iterable[Entry]:
        if not line or line.isspace():
            return ()
        native = load_object(hidden(line))
        if native is None:
            self._damaged += 1
            if not self._good and self._damaged >= LOOK_AT:
                raise UnreadableError(NOT_READ.format(LOOK_AT))
            return ()
        try:
            told = list(self._read_line(native))
        except UnreadableError:
            raise
        except Exception:  # noqa: BLE001  # a reader must not raise; one that does costs its line, not the session
            self._damaged += 1
            return ()
        self._good += 1
        return told


class SubagentCalls:
    """What the sub-agents of a session used, where each of them has a file of its own."""

    def __init__(self, new_reader: Callable[[], LineReader]) -> None:
        self._new_reader = new_reader
        self._files: dict[Path, LineCursor] = {}

    def read(self, paths: Iterable[Path]) -> Iterator[Entry]:
        """Their model calls that were not read yet: they cost, and are no calls of the agent that they work for."""
        for path in paths:
            if path not in self._files:
                self._files[path] = LineCursor(path, self._new_reader())
            for at, fact in self._files[path].read():
                if isinstance(fact, ModelCalled):
                    yield Entry(at, replace(fact, is_inside=True))


def objects_of(path: Path) -> Iterator[dict[str, Any]]:
    """The JSON objects of a file, line by line; what is none is passed over."""
    framer = LineFramer()
    with path.open("rb") as file:
        while chunk := file.read(READ_SIZE):
            for line in framer.feed(chunk):
                native = load_object(line)
                if native is not None:
                    yield native


def files_below(root: Path, pattern: str) -> Iterator[Found]:
    """The files that match: `*/*.jsonl`. What vanishes meanwhile, or may not be looked at, is not there."""
    return _below(root, tuple(re.compile(fnmatch.translate(part)) for part in pattern.split("/")))


def _below(directory: str | Path, patterns: tuple[re.Pattern[str], ...]) -> Iterator[Found]:
    # There can be very many: one look at each, and none at what has another name.
    (pattern, *others), entries = patterns, _entries(directory)
    for entry in entries:
        if not pattern.match(entry.name):
            continue
        try:
            status = entry.stat()
        except OSError:
            continue
        if others and stat.S_ISDIR(status.st_mode):
            yield from _below(entry.path, tuple(others))
        elif not others and stat.S_ISREG(status.st_mode):
            yield Found(Path(entry.path), "", status.st_size, status.st_mtime_ns)


def _entries(directory: str | Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(directory) as entries:
            return list(entries)
    except OSError:
        return []


def milliseconds_of(said: Any) -> int | None:
    """The time that a row has, as ISO 8601 or in milliseconds since the epoch. None: none that can be."""
    if isinstance(said, int | float) and not isinstance(said, bool):
        return int(said) if EARLIEST < said < LATEST else None
    if not isinstance(said, str):
        return None
    try:
        time = datetime.fromisoformat(said)
    except ValueError:
        return None
    when = round((time if time.tzinfo is not None else time.replace(tzinfo=UTC)).timestamp() * 1000)
    return when if EARLIEST < when < LATEST else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """How the rows of a file hang together."""

    id: str
    """The field with the id of a row."""
    parent: str
    """The field with the id of the row that it follows."""
    starts: Callable[[Mapping[str, Any]], bool]
    """This row is a prompt: what follows belongs to it."""

    def left_behind(self, path: Path) -> Collection[str]:
        """The ids of all rows that belong to a prompt that is on no way from the last row to the first.

        Whole prompts and no single rows: the results of tools that ran side by side branch off, too, and are no
        branches that anybody left.
        """
        parents: dict[str, str] = {}
        prompt_of: dict[str, str] = {}
        last = ""
        for row in objects_of(path):
            name, parent = row.get(self.id), row.get(self.parent)
            if isinstance(name, str):
                last = name
                parents[name] = parent if isinstance(parent, str) else ""
                prompt_of[name] = name if self.starts(row) else prompt_of.get(parents[name], "")
        kept = {""}
        while last in parents:
            kept.add(prompt_of[last])
            last = parents.pop(last)
        return {name for name, prompt in prompt_of.items() if prompt not in kept}


def hidden(data: bytes) -> bytes:
    """The same, as many bytes as it was, with its secrets as asterisks. JSON stays JSON."""
    spans, _ = _finder().find_secrets(data)
    if not spans:  # nearly always
        return data
    # Another one each time: it remembers what it hid, and nobody puts that back.
    return Redactor().hide(data, spans)


def hidden_text(data: bytes) -> str:
    """As text. What is no UTF-8 is shown as such."""
    return hidden(data).decode("utf-8", "replace")


@cache
def _finder() -> Redactor:
    return Redactor(_values())


@cache
def _values() -> frozenset[str]:
    return secret_values(os.environ)
