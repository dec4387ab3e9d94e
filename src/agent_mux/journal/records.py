"""What crosses the boundary of a run, as records. Everything that events depend on is one of these.

The journal stores records and the normalizer reads them, live and later: that is why the events can be derived again,
exactly. Each record has its time: microseconds since the recording began, from a monotonic clock.
"""

from enum import Enum
from typing import Any, Literal

import msgspec

from agent_mux._util.sanitize import sanitize_unicode
from agent_mux.assembler import Cause, StreamContext
from agent_mux.sdk.codec import AnyAction, CodecContext, TerminalSize
from agent_mux.sdk.framing import Framing

FORMAT = "agent-mux-journal"
VERSION = 1


class Kind(Enum):
    """One letter each, as in the file."""

    HEADER = b"H"
    STDOUT = b"O"
    STDERR = b"E"
    STDIN = b"I"
    """What we wrote. In a live run it follows from the codec; in a transcript of somebody else it is read."""
    ACTION = b"A"
    CONTROL = b"C"
    EXIT = b"X"


class Record(msgspec.Struct, frozen=True, gc=False):
    """One thing that happened."""

    kind: Kind
    at: int
    """Microseconds since the recording began."""
    payload: bytes


class Header(msgspec.Struct, frozen=True, kw_only=True):
    """The first record: everything that the normalizer needs besides the records. No secrets."""

    format: str = FORMAT
    version: int = VERSION
    package_version: str
    started_at: int
    """When the recording began: wall clock, milliseconds since the epoch."""
    observing: bool = False
    """The records are from a transcript that somebody else made: what went to stdin is news to the codec."""
    codec: CodecContext
    stream: StreamContext
    framing: Framing = "lines"
    """How messages are told apart on stdin and stdout."""
    argv: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    options: dict[str, Any] = {}
    """The options as given, redacted: for people."""


class Exited(msgspec.Struct, frozen=True):
    """The process is gone and its output is complete. The last record of a run that ended in order."""

    code: int | None = None
    signal: int | None = None


class Control(msgspec.Struct, frozen=True, omit_defaults=True):
    """Something that the mux did to the run, or that befell it."""

    what: Literal["start", "quiet", "resize", "pause", "resume", "note", "attempt_over", "retry"] | Cause
    message: str = ""
    size: TerminalSize = TerminalSize()
    """For `resize`."""
    exited: Exited = Exited()
    """For `attempt_over`: how the process ended that may not be the last."""
    attempt: int = 0
    """For `retry`: the number of the attempt that failed, from 1."""
    max_attempts: int = 0
    delay_ms: int = 0
    """For `retry`: milliseconds until the next attempt."""


_ACTION = msgspec.json.Decoder(AnyAction)
_CONTROL = msgspec.json.Decoder(Control)
_EXITED = msgspec.json.Decoder(Exited)
_HEADER = msgspec.json.Decoder(Header)


def encode(value: Header | Control | Exited | AnyAction) -> bytes:
    """The payload of a record that holds a value."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:  # a directory whose name is no UTF-8
        return msgspec.json.encode(sanitize_unicode(value))


def decode_header(payload: bytes) -> Header:
    """Read a header. Raises `msgspec.ValidationError` when it is not one, or one of a newer format."""
    header = _HEADER.decode(payload)
    if header.format != FORMAT or header.version > VERSION:
        raise msgspec.ValidationError(
            f"this is {header.format} version {header.version}; this agent-mux reads {FORMAT} up to version {VERSION}"
        )
    return header


def decode_action(record: Record) -> AnyAction:
    """The action in a record of that kind."""
    action: AnyAction = _ACTION.decode(record.payload)
    return action


def decode_control(record: Record) -> Control:
    """The control in a record of that kind."""
    return _CONTROL.decode(record.payload)


def decode_exit(record: Record) -> Exited:
    """The exit in a record of that kind."""
    return _EXITED.decode(record.payload)
