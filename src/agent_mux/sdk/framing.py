r"""Bytes to messages, whatever the chunking: lines, or messages that say their length.

Only `\n` ends a line: U+2028 and the like occur raw inside JSON strings.
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
    "as_line",
    "framed",
    "from_line",
    "lines_of",
    "new_framer",
]

Framing = Literal["lines", "content-length", "chunks"]
"""`content-length`: each message has a head with its length in bytes, as in the Language Server Protocol.
`chunks`: there are no messages; whatever comes is handed on as it comes (a terminal)."""

LONGEST_NUMBER = 9
"""Digits of a length in bytes. A head that announces more is noise: waiting for that much is waiting for ever."""
_LENGTH = b"content-length"
_USUAL_HEAD = re.compile(rb"Content-Length: ([1-9]\d{0,8})\r\n\r\n")
_HEAD = frozenset({_LENGTH, b"content-type"})


class Framer(Protocol):
    """Collects chunks and hands out complete messages. Linear in the bytes it is fed."""

    def feed(self, chunk: bytes) -> list[bytes]:
        """The messages that this chunk completes."""
        ...

    def finish(self) -> list[bytes]:
        """What is left when the stream has ended."""
        ...


class LineFramer:
    r"""Hands out complete lines, without their `\n` or `\r\n`."""

    __slots__ = ("_pieces",)

    def __init__(self) -> None:
        self._pieces: list[bytes] = []

    @property
    def is_empty(self) -> bool:
        """No line is half complete."""
        return not self._pieces

    def feed(self, chunk: bytes) -> list[bytes]:
        """The lines that this chunk completes."""
        if not self._pieces and chunk.find(b"\n") == len(chunk) - 1 and chunk:  # one whole line, as a live agent prints
            return [chunk[:-2] if chunk.endswith(b"\r\n") else chunk[:-1]]
        if b"\n" not in chunk:
            if chunk:
                self._pieces.append(chunk)
            return []
        lines = chunk.split(b"\n")
        if self._pieces:
            self._pieces.append(lines[0])
            lines[0] = b"".join(self._pieces)
            self._pieces = []
        rest = lines.pop()
        if rest:
            self._pieces.append(rest)
        if b"\r" in chunk or lines[0].endswith(b"\r"):
            return [line[:-1] if line.endswith(b"\r") else line for line in lines]
        return lines

    def finish(self) -> list[bytes]:
        """The last line, when the stream ended without a newline."""
        if not self._pieces:
            return []
        last = b"".join(self._pieces)
        self._pieces = []
        return [last.removesuffix(b"\r")]


class ContentLengthFramer:
    r"""Hands out messages that follow a head: `Content-Length: <bytes>\r\n`, perhaps `Content-Type: ...\r\n`, `\r\n`.

    What stands where a head should be, and is none, is handed out line by line: a program may print something before
    it speaks the protocol.
    """

    __slots__ = ("_body", "_head", "_length", "_missing")

    def __init__(self) -> None:
        self._head = LineFramer()
        self._length: int | None = None
        """What the head announces, until it is complete."""
        self._missing = 0
        """Bytes of the message that are still to come; 0 where a head is."""
        self._body: list[bytes] = []

    def feed(self, chunk: bytes) -> list[bytes]:
        """The messages that this chunk completes."""
        messages: list[bytes] = []
        at = 0
        while at < len(chunk):
            head = _USUAL_HEAD.match(chunk, at) if not self._missing and self._head.is_empty else None
            end = head.end() + int(head[1]) if head is not None else 0
            if head is not None and end <= len(chunk):  # a whole message, as a live agent prints
                messages.append(chunk[head.end() : end])
                self._length = None
            elif not self._missing:
                end = chunk.find(b"\n", at) + 1 or len(chunk)
                messages += [line for line in self._head.feed(chunk[at:end]) if not self._is_head(line)]
            else:
                end = min(at + self._missing, len(chunk))
                self._missing -= end - at
                self._body.append(chunk[at:end])
                if not self._missing:
                    messages.append(self._take_body())
            at = end
        return messages

    def finish(self) -> list[bytes]:
        """What is left of a message, or of a line, when the stream has ended."""
        self._missing = 0
        return [*([self._take_body()] if self._body else []), *self._head.finish()]

    def _is_head(self, line: bytes) -> bool:
        name, colon, value = line.partition(b":")
        if not line:
            self._missing, self._length = self._length or 0, None
            return True
        if not colon or name.strip().lower() not in _HEAD:
            return False
        if name.strip().lower() == _LENGTH:
            number = value.strip()
            if not number.isdigit() or len(number) > LONGEST_NUMBER:
                return False
            self._length = int(number)
        return True

    def _take_body(self) -> bytes:
        body, self._body = b"".join(self._body), []
        return body


class ChunkFramer:
    """Hands on what comes."""

    __slots__ = ()

    def feed(self, chunk: bytes) -> list[bytes]:
        """The chunk."""
        return [chunk] if chunk else []

    def finish(self) -> list[bytes]:
        """Nothing is ever kept back."""
        return []


_FRAMERS: Mapping[Framing, Callable[[], Framer]] = {
    "lines": LineFramer, "content-length": ContentLengthFramer, "chunks": ChunkFramer,
}  # fmt: skip


def new_framer(framing: Framing) -> Framer:
    """A framer for one stream."""
    return _FRAMERS[framing]()


def framed(framing: Framing, message: bytes) -> bytes:
    """A message as it is sent."""
    match framing:
        case "lines":
            return message + b"\n"
        case "content-length":
            return b"Content-Length: %d\r\n\r\n%b" % (len(message), message)
        case "chunks":
            return message


def as_line(framing: Framing, message: bytes) -> bytes:
    """A message as one line of a recording."""
    match framing:
        case "lines":
            return message
        case "content-length":
            return message.replace(b"\n", b" ")  # a line break in JSON is a space; those in its strings are escaped
        case "chunks":
            return json.dumps(message.decode("utf-8", "surrogateescape")).encode()


def from_line(framing: Framing, line: bytes) -> bytes:
    """The message in a line of a recording."""
    if framing != "chunks":
        return line
    try:
        text = json.loads(line)
        return text.encode("utf-8", "surrogateescape") if isinstance(text, str) else line
    except (ValueError, RecursionError):
        return line


def lines_of(chunks: Iterable[bytes]) -> list[bytes]:
    """All lines of a finished stream."""
    framer = LineFramer()
    return [line for chunk in chunks for line in framer.feed(chunk)] + framer.finish()
