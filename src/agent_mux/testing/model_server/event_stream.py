"""The binary event streams of AWS (`application/vnd.amazon.eventstream`): one message is one event.

A message: its length and that of its headers (big-endian, 4 bytes each), their CRC-32, headers, payload, CRC-32 of
everything before. A header: length of its name (1 byte), name, type (7: a text), length of the text (2 bytes), text.
"""

import json
import struct
import zlib
from dataclasses import dataclass
from typing import Any

CONTENT_TYPE = "application/vnd.amazon.eventstream"
TEXT = 7
FRAME = 16  # bytes of a message besides headers and payload


@dataclass(frozen=True, slots=True)
class BinaryEvent:
    """One event, or one exception (`is_exception`), which ends the stream."""

    name: str
    data: Any
    is_exception: bool = False

    def encode(self) -> bytes:
        """As it goes over the wire."""
        kind = "exception" if self.is_exception else "event"
        headers = {":message-type": kind, f":{kind}-type": self.name, ":content-type": "application/json"}
        return message(headers, json.dumps(self.data).encode())


def message(headers: dict[str, str], payload: bytes) -> bytes:
    """One message of a stream."""
    head = b"".join(_header(name, value) for name, value in headers.items())
    prelude = struct.pack("!II", FRAME + len(head) + len(payload), len(head))
    body = prelude + struct.pack("!I", zlib.crc32(prelude)) + head + payload
    return body + struct.pack("!I", zlib.crc32(body))


def _header(name: str, value: str) -> bytes:
    text = value.encode()
    return bytes([len(name)]) + name.encode() + bytes([TEXT]) + struct.pack("!H", len(text)) + text
