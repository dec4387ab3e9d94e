"""JSON for programs: one compact object per line, whatever strings it holds."""

from typing import Any

import msgspec

from agent_mux.events.mending import mended


def to_json(value: Any) -> str:
    """Compact JSON of plain values. What JSON cannot hold is mended."""
    try:
        return msgspec.json.encode(value).decode()
    except (UnicodeEncodeError, RecursionError):
        return msgspec.json.encode(mended(value)).decode()


def envelope(data: Any) -> str:
    """The answer of a command with `--json`."""
    return to_json({"ok": True, "data": data})
