"""Plain values as JSON, one compact line, whatever strings they hold. Events have their own: `events.wire`."""

from typing import Any

import msgspec

from agent_mux.events.mending import mended


def to_json_bytes(value: Any) -> bytes:
    """Compact JSON of plain values. What JSON cannot hold is mended."""
    try:
        return msgspec.json.encode(value)
    except (UnicodeEncodeError, RecursionError):
        return msgspec.json.encode(mended(value))


def to_json(value: Any) -> str:
    """The same as text."""
    return to_json_bytes(value).decode()
