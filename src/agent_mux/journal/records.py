"""Records: everything that crosses the boundary of a run and on which its events depend.

The journal stores records, and the normalizer reads them, live and later. Therefore the events of a run can be derived
again exactly. The time of a record is in microseconds since the recording began, by a monotonic clock.
"""

from enum import Enum
from typing import Any, Literal

import msgspec

from agent_mux._util.sanitize import sanitize_unicode
from agent_mux.assembler import Cause, Mask, StreamContext
from agent_mux.errors import ErrorCode
from agent_mux.sdk.codec import AnyAction, CodecContext, TerminalSize
from agent_mux.sdk.framing import Framing

FORMAT = "agent-mux-journal"
VERSION = 1


class Kind(Enum):
    """The kind of a record; its value is the letter in the file."""

    HEADER = b"H"
    STDOUT = b"O"
    STDERR = b"E"
    STDIN = b"I"
    """What agent-mux wrote. In a live run it follows from the codec; in the transcript of another client it is read."""
    ACTION = b"A"
    CONTROL = b"C"
    EXIT = b"X"


class Record(msgspec.Struct, frozen=True, gc=False):
    """One thing that crossed the boundary of a run."""

    kind: Kind
    at: int
    """Microseconds since the recording began."""
    payload: bytes


class Header(msgspec.Struct, frozen=True, kw_only=True):
    """The first record: what the normalizer needs besides the other records. It contains no secrets."""

    format: str = FORMAT
    version: int = VERSION
    package_version: str
    started_at: int
    """When the recording began: wall clock, milliseconds since the epoch."""
    observing: bool = False
    """Whether the records come from another client's transcript: the codec then has to read standard input, too."""
    codec: CodecContext
    stream: StreamContext
    framing: Framing = "lines"
    """How messages are separated on stdin and stdout."""
    argv: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    options: dict[str, Any] = {}
    """The options as given, redacted; for display only."""

    @property
    def identity(self) -> tuple[str, int]:
        """Run id and start time, which identify the recording.

        Other fields may read back differently: a codec's own context class as `CodecContext`, text that is not UTF-8
        with replacement characters.
        """
        return self.stream.run_id, self.started_at


class Exited(msgspec.Struct, frozen=True):
    """How the process ended, recorded once its output is complete. The last record of a run that ended in order."""

    code: int | None = None
    signal: int | None = None


class Control(msgspec.Struct, frozen=True, omit_defaults=True):
    """Something that agent-mux did to the run, or an event such as a timeout or a failed start."""

    what: (
        Literal[
            "start",
            "quiet",
            "resize",
            "pause",
            "resume",
            "note",
            "preview",
            "attempt_over",
            "retry",
            "workspace",
            "approval_mode",
            "masks",
        ]
        | Cause
    )
    message: str = ""
    """For `approval_mode`: the new mode.

    For `preview`: the diff of the edits that the last record asks to approve, against the files on disk."""
    code: ErrorCode | None = None
    """For `note`: the code of an error after which the run continues. None: a warning."""
    size: TerminalSize = TerminalSize()
    """Size of the terminal, for `resize`."""
    exited: Exited = Exited()
    """How the process of a possibly not last attempt ended, for `attempt_over`."""
    attempt: int = 0
    """Number of the attempt that failed, from 1, for `retry`."""
    max_attempts: int = 0
    delay_ms: int = 0
    """Milliseconds until the next attempt, for `retry`."""
    header: Header | None = None
    """What the normalizer needs for the next attempt, for a `retry` with another agent or model."""
    changed_files: tuple[dict[str, Any], ...] | None = None
    """For `workspace`: the files that changed, as in the result. None: only the events report them."""
    worktree: dict[str, Any] | None = None
    """For `workspace`: what became of the run's own worktree, as in the result."""

    masks: tuple[Mask, ...] = ()
    """For `masks`: what was hidden or held back in the texts of the next record, which redaction of lines missed."""


_ACTION = msgspec.json.Decoder(AnyAction)
_CONTROL = msgspec.json.Decoder(Control)
_EXITED = msgspec.json.Decoder(Exited)


def encode(value: Header | Control | Exited | AnyAction) -> bytes:
    """Return the payload of a record that contains this value."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:  # for example a directory whose name is not UTF-8
        return msgspec.json.encode(sanitize_unicode(value))


def decode_header(payload: bytes) -> Header:
    """Return the header of a journal. Raises `msgspec.ValidationError` for other data and for newer formats."""
    header = msgspec.json.decode(payload, type=Header)
    if header.format != FORMAT or header.version > VERSION:
        raise msgspec.ValidationError(
            f"this is {header.format} version {header.version}; this agent-mux reads {FORMAT} up to version {VERSION}"
        )
    return header


def decode_action(record: Record) -> AnyAction:
    """Return the action in a record of kind ACTION."""
    action: AnyAction = _ACTION.decode(record.payload)
    return action


def decode_control(record: Record) -> Control:
    """Return the control in a record of kind CONTROL."""
    return _CONTROL.decode(record.payload)


def decode_exit(record: Record) -> Exited:
    """Return the exit in a record of kind EXIT."""
    return _EXITED.decode(record.payload)
