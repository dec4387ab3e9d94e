"""JSON that can always be written, whatever strings it holds."""

from typing import Any

import msgspec

from agent_mux.events.mending import mended


def to_json(value: Any) -> str:
    """Compact JSON of plain values. What JSON cannot hold is mended."""
    try:
        return msgspec.json.encode(value).decode()
    except (UnicodeEncodeError, RecursionError):
        return msgspec.json.encode(mended(value)).decode()
