"""Which lines can only be OpenCode's."""

from collections.abc import Mapping
from typing import Any

from agent_mux_adapters.opencode.run_codec import PARTS


def is_run_line(line: Mapping[str, Any]) -> bool:
    """A line of `opencode run --format json`."""
    return _is_session(line.get("sessionID")) and (line.get("type") in PARTS or line.get("type") == "error")


def is_serve_line(line: Mapping[str, Any]) -> bool:
    """An event of `opencode serve`, or the first line of the bridge."""
    event_id = line.get("id")
    is_event = isinstance(event_id, str) and event_id.startswith("evt_")
    return "properties" in line and (is_event or line.get("type") == "bridge.starting")


def _is_session(value: Any) -> bool:
    return isinstance(value, str) and value.startswith("ses_")
