"""Encodings of streamed answers: server-sent events, the binary event streams of AWS, and ids and pieces for both.

A binary message (`application/vnd.amazon.eventstream`) is one event: its length and that of its headers (big-endian, 4
bytes each), their CRC-32, headers, payload, CRC-32 of everything before. A header: length of its name (1 byte), name,
type (7: a text), length of the text (2 bytes), text.
"""

import itertools
import json
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

SSE_TYPE = "text/event-stream"
BINARY_TYPE = "application/vnd.amazon.eventstream"
_TEXT_HEADER = 7
_FRAME_SIZE = 16  # bytes of a binary message besides headers and payload


@dataclass(frozen=True, slots=True)
class ServerEvent:
    """One server-sent event of a streamed answer."""

    name: str
    """The name; empty in APIs whose events have none."""
    data: Any
    """The payload: text is sent unchanged, other values as JSON."""

    def encode(self) -> bytes:
        """Return the bytes of the event on the wire."""
        name = f"event: {self.name}\n" if self.name else ""
        data = self.data if isinstance(self.data, str) else json.dumps(self.data)
        return f"{name}data: {data}\n\n".encode()


@dataclass(slots=True)
class Ids:
    """Numbered ids, equal in every run: `msg_0001`, `toolu_0002`, ..."""

    first: int = 1
    _numbers: Iterator[int] = field(init=False)

    def __post_init__(self) -> None:
        self._numbers = itertools.count(self.first)

    def new(self, prefix: str) -> str:
        """Return the next id with this prefix."""
        return f"{prefix}_{next(self._numbers):04d}"


def in_pieces(text: str, count: int) -> list[str]:
    """Cut a text into at most `count` parts; an empty text is one empty part."""
    size = max(1, -(-len(text) // count))
    return [text[start : start + size] for start in range(0, len(text), size)] or [""]


# -- binary streams


@dataclass(frozen=True, slots=True)
class BinaryEvent:
    """One event of a binary stream, or an exception (`is_exception`), which ends the stream."""

    name: str
    data: Any
    is_exception: bool = False

    def encode(self) -> bytes:
        """Return the bytes of the event on the wire."""
        kind = "exception" if self.is_exception else "event"
        headers = {":message-type": kind, f":{kind}-type": self.name, ":content-type": "application/json"}
        return message(headers, json.dumps(self.data).encode())


def message(headers: dict[str, str], payload: bytes) -> bytes:
    """Return one message of a binary stream."""
    head = b"".join(_header(name, value) for name, value in headers.items())
    prelude = struct.pack("!II", _FRAME_SIZE + len(head) + len(payload), len(head))
    body = prelude + struct.pack("!I", zlib.crc32(prelude)) + head + payload
    return body + struct.pack("!I", zlib.crc32(body))


def _header(name: str, value: str) -> bytes:
    text = value.encode()
    return bytes([len(name)]) + name.encode() + bytes([_TEXT_HEADER]) + struct.pack("!H", len(text)) + text
