"""JSON for programs: one compact object per line, whatever strings it holds."""

from typing import Any

from agent_mux.telling.json_text import to_json

__all__ = ["envelope", "to_json"]


def envelope(data: Any) -> str:
    """The answer of a command with `--json`."""
    return to_json({"ok": True, "data": data})
