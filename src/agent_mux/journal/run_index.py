"""The run index `run-index.jsonl`: one line for each run that ended, so that a session's runs can be found.

    {"v":1,"runId":"01...","agent":"...","model":"...","sessionId":"...","timestamp":"2026-11-22T09:30:00.000Z",
     "cost":0.02,"tags":["review"],"projectId":"..."}

The file is append-only. Each line is shorter than 512 bytes and written with one system call, so that lines of
concurrent writers never mix. If a line would be too long, the longest tags are omitted and `cut` lists the omission.
See docs/spec/run-api.md, section 1 (storage).
"""

import os
import stat
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
from msgspec import structs

from agent_mux._util.files import PRIVATE_FILE, make_directory
from agent_mux._util.sanitize import replace_surrogates, sanitize_unicode
from agent_mux.errors import AgentMuxError

INDEX = "run-index.jsonl"
"""File name in the `.agent-mux` of the project in which the run worked, else in the global directory."""
VERSION = 1
MAX_LINE_SIZE = 511  # bytes, including the newline
_DROPPABLE = ("project_id", "model", "session_id")
"""Fields that are omitted, in this order, if a line is too long even without tags."""


class IndexRecord(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, kw_only=True):
    """One line of the index: one run that ended."""

    v: int
    run_id: str
    agent: str
    model: str | None = None
    session_id: str | None = None
    """The agent's own session id; None if the agent reported none."""
    timestamp: str
    """When the run was started: ISO 8601, in UTC."""
    cost: float | None = None
    """US dollars; None if the cost is unknown."""
    tags: tuple[str, ...] = ()
    project_id: str | None = None
    cut: tuple[str, ...] = ()
    """Keys that were omitted, or of which values were omitted, to keep the line short."""


_KEYS = dict(zip(IndexRecord.__struct_fields__, IndexRecord.__struct_encode_fields__, strict=True))


def new_index_record(*, started_at: int, **fields: Any) -> IndexRecord:
    """Return a record of the current version. `started_at` is in milliseconds since the epoch."""
    when = datetime.fromtimestamp(started_at / 1000, UTC).isoformat(timespec="milliseconds").removesuffix("+00:00")
    return IndexRecord(v=VERSION, timestamp=f"{when}Z", **fields)


def encode_line(record: IndexRecord) -> bytes:
    """Return the record as a line of at most MAX_LINE_SIZE bytes."""
    line = _encode(record)
    if len(line) <= MAX_LINE_SIZE:
        return line
    bare = structs.replace(record, tags=(), cut=("tags",) if record.tags else ())
    for name in _DROPPABLE:
        if len(_encode(bare)) > MAX_LINE_SIZE and getattr(bare, name) is not None:
            bare = structs.replace(bare, **{name: None}, cut=(*bare.cut, _KEYS[name]))
    space = MAX_LINE_SIZE - len(_encode(bare)) - len(b'"tags":[],')
    kept = _select_tags(record.tags, space)
    cut = bare.cut if set(kept) != set(record.tags) else tuple(name for name in bare.cut if name != "tags")
    return _encode(structs.replace(bare, tags=kept, cut=cut))


def append_line(path: Path, line: bytes) -> None:
    """Append a line with one write, creating the directory if needed. Raises `OSError`."""
    make_directory(path.parent)
    # In a project from an untrusted source the name may be a link to any file, or a pipe without a reader.
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    descriptor = os.open(path, flags, PRIVATE_FILE)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(0, "not a regular file", str(path))
        if status.st_size and os.pread(descriptor, 1, status.st_size - 1) != b"\n":
            line = b"\n" + line  # the last line is truncated: keep ours separate
        if os.write(descriptor, line) != len(line):
            raise OSError(0, "the line was written only in part", str(path))
    finally:
        os.close(descriptor)


def read_index(path: Path) -> Iterator[IndexRecord]:
    """Yield the records of a file, oldest first; none if the file does not exist.

    Truncated lines and lines of another version are skipped. Raises CONFIG_ERROR for a file that cannot be read.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            while line := file.readline(MAX_LINE_SIZE + 1):
                record = _decode(line)
                if record is not None:
                    yield record
    except FileNotFoundError:
        return
    except OSError as error:
        raise AgentMuxError("CONFIG_ERROR", f"cannot read {path}: {error.strerror or error}") from error


def _decode(line: bytes) -> IndexRecord | None:
    if not line.endswith(b"\n"):
        return None
    try:
        record = msgspec.json.decode(line, type=IndexRecord)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None
    return record if record.v == VERSION else None


def _encode(record: IndexRecord) -> bytes:
    try:
        return msgspec.json.encode(record) + b"\n"
    except UnicodeEncodeError:
        return msgspec.json.encode(sanitize_unicode(record)) + b"\n"


def _select_tags(tags: tuple[str, ...], space: int) -> tuple[str, ...]:
    """Return as many tags as fit into `space` bytes, shortest first, in their original order."""
    sizes = {tag: len(msgspec.json.encode(replace_surrogates(tag))) + len(b",") for tag in tags}
    kept = set()
    for tag in sorted(sizes, key=sizes.__getitem__):
        space -= sizes[tag]
        if space < 0:
            break
        kept.add(tag)
    return tuple(tag for tag in sizes if tag in kept)
