"""`run-index.jsonl`: one line for each run that ended, so that what was asked of a run can be found by its session.

    {"v":1,"runId":"01...","agent":"...","model":"...","sessionId":"...","timestamp":"2026-11-22T09:30:00.000Z",
     "cost":0.02,"tags":["review"],"projectId":"..."}

Append-only, one write a line, each under 512 bytes, so that writers never mix. Where a run has more to say, its longest
tags are left out, and `cut` says so. Source: run API, section 1 (storage).
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
"""In the `.agent-mux` of the project that the run worked in, else in the global directory."""
VERSION = 1
LONGEST_LINE = 511  # bytes, with its newline
_LEFT_OUT = ("project_id", "model", "session_id")
"""What is left out when even a line without tags is too long, in this order."""


class IndexRecord(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, kw_only=True):
    """One run."""

    v: int
    run_id: str
    agent: str
    model: str | None = None
    session_id: str | None = None
    """The agent's own id; None where it said none."""
    timestamp: str
    """When the run was started: ISO 8601, in UTC."""
    cost: float | None = None
    """US dollars; None where nobody knows."""
    tags: tuple[str, ...] = ()
    project_id: str | None = None
    cut: tuple[str, ...] = ()
    """Keys that are not here, or not with all of their values, because the line would be too long."""


_KEYS = dict(zip(IndexRecord.__struct_fields__, IndexRecord.__struct_encode_fields__, strict=True))
_DECODER = msgspec.json.Decoder(IndexRecord)


def new_index_record(*, started_at: int, **known: Any) -> IndexRecord:
    """A record of this version. `started_at`: milliseconds since the epoch."""
    when = datetime.fromtimestamp(started_at / 1000, UTC).isoformat(timespec="milliseconds").removesuffix("+00:00")
    return IndexRecord(v=VERSION, timestamp=f"{when}Z", **known)


def encode_line(record: IndexRecord) -> bytes:
    """The record as a line that is short enough."""
    line = _encoded(record)
    if len(line) <= LONGEST_LINE:
        return line
    bare = structs.replace(record, tags=(), cut=("tags",) if record.tags else ())
    for name in _LEFT_OUT:
        if len(_encoded(bare)) > LONGEST_LINE and getattr(bare, name) is not None:
            bare = structs.replace(bare, **{name: None}, cut=(*bare.cut, _KEYS[name]))
    room = LONGEST_LINE - len(_encoded(bare)) - len(b'"tags":[],')
    kept = _fitting(record.tags, room)
    cut = bare.cut if set(kept) != set(record.tags) else tuple(name for name in bare.cut if name != "tags")
    return _encoded(structs.replace(bare, tags=kept, cut=cut))


def append_line(path: Path, line: bytes) -> None:
    """Add a line, in one write. The directory is made if need be. Raises `OSError`."""
    make_directory(path.parent)
    # Of a project that came from elsewhere the name may be a link to any file, or a pipe that nobody reads.
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    descriptor = os.open(path, flags, PRIVATE_FILE)
    try:
        told = os.fstat(descriptor)
        if not stat.S_ISREG(told.st_mode):
            raise OSError(0, "it is no regular file", str(path))
        if told.st_size and os.pread(descriptor, 1, told.st_size - 1) != b"\n":
            line = b"\n" + line  # somebody's line was torn: it must not take ours with it
        if os.write(descriptor, line) != len(line):
            raise OSError(0, "the line was not written whole", str(path))
    finally:
        os.close(descriptor)


def read_index(path: Path) -> Iterator[IndexRecord]:
    """All records of a file, the oldest first; none where there is none.

    Lines that are torn, or of another version, are passed over. Raises CONFIG_ERROR for a file that cannot be read.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            while line := file.readline(LONGEST_LINE + 1):
                record = _decoded(line)
                if record is not None:
                    yield record
    except FileNotFoundError:
        return
    except OSError as error:
        raise AgentMuxError("CONFIG_ERROR", f"cannot read {path}: {error.strerror or error}") from error


def _decoded(line: bytes) -> IndexRecord | None:
    if not line.endswith(b"\n"):
        return None
    try:
        record = _DECODER.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None
    return record if record.v == VERSION else None


def _encoded(record: IndexRecord) -> bytes:
    try:
        return msgspec.json.encode(record) + b"\n"
    except UnicodeEncodeError:
        return msgspec.json.encode(sanitize_unicode(record)) + b"\n"


def _fitting(tags: tuple[str, ...], room: int) -> tuple[str, ...]:
    """As many of them as fit into so many bytes, the shortest first, in their own order."""
    sizes = {tag: len(msgspec.json.encode(replace_surrogates(tag))) + len(b",") for tag in tags}
    kept = set()
    for tag in sorted(sizes, key=sizes.__getitem__):
        room -= sizes[tag]
        if room < 0:
            break
        kept.add(tag)
    return tuple(tag for tag in sizes if tag in kept)
