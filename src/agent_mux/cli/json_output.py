"""JSON for programs: the answer of a command with `--json`."""

from typing import Any

from agent_mux.plain_json import to_json


def envelope(data: Any) -> str:
    """The answer of a command with `--json`."""
    return to_json({"ok": True, "data": data})
