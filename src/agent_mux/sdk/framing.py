r"""Split byte streams into messages: lines, messages with `Content-Length`, or unframed chunks.

Only `\n` ends a line, because U+2028 and similar characters occur unescaped inside of JSON strings.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Literal, Protocol

__all__ = [
    "ChunkFramer",
    "ContentLengthFramer",
    "Framer",
    "Framing",
    "LineFramer",
    "frame_message",
    "from_recorded_line",
    "new_framer",
    "split_lines",
    "to_recorded_line",
]

Framing = Literal["lines", "content-length", "chunks"]
"""`content-length`: a header with the length in bytes precedes each message, as in the Language Server Protocol.
`chunks`: the stream has no messages; each chunk is returned as received (a terminal)."""

MAX_MESSAGE_BYTES = 128 << 20
"""Bytes of a line or a message. Of a longer one, which no agent needs, only the beginning is returned."""
KEPT_OF_TOO_LONG = 1 << 16
"""Bytes that are returned of a message beyond MAX_MESSAGE_BYTES: a codec reports it as a line that it does not know."""
MAX_LENGTH_DIGITS = 9
"""Digits of a length in bytes. A longer number is noise: so many bytes would never arrive."""
_LENGTH_FIELD = b"content-length"
_USUAL_HEADER = re.compile(rb"Content-Length: ([1-9]\d{0,8})\r\n\r\n")
_HEADER_FIELDS = frozenset({_LENGTH_FIELD, b"content-type"})


class Framer(Protocol):
    """Collects chunks and returns complete messages, in time linear in the number of bytes."""

    def feed(self, chunk: bytes) -> list[bytes]:
        """Add a chunk; return the messages that it completes."""
        ...

    def finish(self) -> list[bytes]:
        """Return the incomplete message at the end of the stream, if any."""
        ...


class LineFramer:
    r"""Returns complete lines, without their `\n` or `\r\n`."""

    __slots__ = ("_pieces", "_size")

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._size = 0
        """Bytes of the incomplete line, with those that were not kept."""

    @property
    def is_empty(self) -> bool:
        """Whether no incomplete line is held."""
        return not self._pieces

    def feed(self, chunk: bytes) -> list[bytes]:
        """Add a chunk; return the lines that it completes."""
        if (
            not self._pieces and chunk.find(b"\n") == len(chunk) - 1 and 0 < len(chunk) <= MAX_MESSAGE_BYTES
        ):  # exactly one line, the usual case of a live agent
            return [chunk[:-2] if chunk.endswith(b"\r\n") else chunk[:-1]]
        if b"\n" not in chunk:
            if chunk:
                self._hold(chunk)
            return []
        lines = chunk.split(b"\n")
        if self._pieces:
            self._hold(lines[0])
            lines[0] = self._take()
        rest = lines.pop()
        if len(chunk) > MAX_MESSAGE_BYTES:
            lines = [line if len(line) <= MAX_MESSAGE_BYTES else line[:KEPT_OF_TOO_LONG] for line in lines]
        if rest:
            self._hold(rest)
        if b"\r" in chunk or lines[0].endswith(b"\r"):
            return [line[:-1] if line.endswith(b"\r") else line for line in lines]
        return lines

    def finish(self) -> list[bytes]:
        """Return the last line if the stream ended without a newline."""
        if not self._pieces:
            return []
        return [self._take().removesuffix(b"\r")]

    def _hold(self, piece: bytes) -> None:
        is_too_long, self._size = self._size > MAX_MESSAGE_BYTES, self._size + len(piece)
        if is_too_long:
            return
        self._pieces.append(piece)
        if self._size > MAX_MESSAGE_BYTES:
            self._pieces = [b"".join(self._pieces)[:KEPT_OF_TOO_LONG]]

    def _take(self) -> bytes:
        line, self._pieces, self._size = b"".join(self._pieces), [], 0
        return line


class ContentLengthFramer:
    r"""Returns messages with a header: `Content-Length: <bytes>\r\n`, optionally `Content-Type: ...\r\n`, `\r\n`.

    Other text at the position of a header is returned line by line, because a program may print something before the
    first message.
    """

    __slots__ = ("_body", "_header", "_length", "_missing", "_room")

    def __init__(self) -> None:
        self._header = LineFramer()
        self._length: int | None = None
        """Length that the current header states, until the header is complete."""
        self._missing = 0
        """Bytes of the message that have not arrived; 0 while a header is read."""
        self._body: list[bytes] = []
        self._room = 0
        """Bytes of the message that are still to be kept."""

    def feed(self, chunk: bytes) -> list[bytes]:
        """Add a chunk; return the messages that it completes."""
        messages: list[bytes] = []
        position = 0
        while position < len(chunk):
            header = _USUAL_HEADER.match(chunk, position) if not self._missing and self._header.is_empty else None
            end = header.end() + int(header[1]) if header is not None else 0
            if (
                header is not None and end <= len(chunk) and end - header.end() <= MAX_MESSAGE_BYTES
            ):  # a complete message, the usual case of a live agent
                messages.append(chunk[header.end() : end])
                self._length = None
            elif not self._missing:
                end = chunk.find(b"\n", position) + 1 or len(chunk)
                messages += [
                    line for line in self._header.feed(chunk[position:end]) if not self._read_header_line(line)
                ]
            else:
                end = min(position + self._missing, len(chunk))
                self._missing -= end - position
                self._keep(chunk[position:end])
                if not self._missing:
                    messages.append(self._take_body())
            position = end
        return messages

    def finish(self) -> list[bytes]:
        """Return the incomplete message or line at the end of the stream, if any."""
        self._missing = 0
        return [*([self._take_body()] if self._body else []), *self._header.finish()]

    def _read_header_line(self, line: bytes) -> bool:
        """Process a line of a header; return False if it is not one."""
        name, colon, value = line.partition(b":")
        if not line:
            self._missing, self._length = self._length or 0, None
            self._room = self._missing if self._missing <= MAX_MESSAGE_BYTES else KEPT_OF_TOO_LONG
            return True
        if not colon or name.strip().lower() not in _HEADER_FIELDS:
            return False
        if name.strip().lower() == _LENGTH_FIELD:
            number = value.strip()
            if not number.isdigit() or len(number) > MAX_LENGTH_DIGITS:
                return False
            self._length = int(number)
        return True

    def _keep(self, part: bytes) -> None:
        if self._room:
            self._body.append(part[: self._room])
            self._room -= len(self._body[-1])

    def _take_body(self) -> bytes:
        body, self._body = b"".join(self._body), []
        return body


class ChunkFramer:
    """Returns every chunk as received."""

    __slots__ = ()

    def feed(self, chunk: bytes) -> list[bytes]:
        """Return the chunk, unless it is empty."""
        return [chunk] if chunk else []

    def finish(self) -> list[bytes]:
        """Return nothing, because no bytes are held back."""
        return []


_FRAMERS: Mapping[Framing, Callable[[], Framer]] = {
    "lines": LineFramer, "content-length": ContentLengthFramer, "chunks": ChunkFramer,
}  # fmt: skip


def new_framer(framing: Framing) -> Framer:
    """Create a framer for one stream."""
    return _FRAMERS[framing]()


def frame_message(framing: Framing, message: bytes) -> bytes:
    """Return a message with its framing, ready to be sent."""
    match framing:
        case "lines":
            return message + b"\n"
        case "content-length":
            return b"Content-Length: %d\r\n\r\n%b" % (len(message), message)
        case "chunks":
            return message


def to_recorded_line(framing: Framing, message: bytes) -> bytes:
    """Return a message as one line of a recording."""
    match framing:
        case "lines":
            return message
        case "content-length":
            return message.replace(b"\n", b" ")  # JSON treats a newline as a space, and escapes it in strings
        case "chunks":
            return json.dumps(message.decode("utf-8", "surrogateescape")).encode()


def from_recorded_line(framing: Framing, line: bytes) -> bytes:
    """Return the message of a line of a recording; the inverse of `as_line`."""
    if framing != "chunks":
        return line
    try:
        text = json.loads(line)
        return text.encode("utf-8", "surrogateescape") if isinstance(text, str) else line
    except (ValueError, RecursionError):
        return line


def split_lines(chunks: Iterable[bytes]) -> list[bytes]:
    """Split the chunks of a finished stream into lines."""
    framer = LineFramer()
    return [line for chunk in chunks for line in framer.feed(chunk)] + framer.finish()
