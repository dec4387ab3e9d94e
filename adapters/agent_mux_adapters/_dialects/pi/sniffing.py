"""Which lines can only be of this dialect."""

from collections.abc import Mapping
from typing import Any

_EVENTS: Mapping[str, str] = {
    "agent_end": "messages",
    "message_end": "message",
    "message_start": "message",
    "message_update": "assistantMessageEvent",
    "tool_execution_end": "toolCallId",
    "tool_execution_start": "toolCallId",
    "turn_end": "toolResults",
}
"""Type -> a field that it has here."""


def is_event(line: Mapping[str, Any]) -> bool:
    """An event, of either mode; a session header only where it says the version of its file."""
    kind = line.get("type")
    if kind == "session":
        return "version" in line and "cwd" in line
    return isinstance(kind, str) and kind in _EVENTS and _EVENTS[kind] in line


def is_rpc_line(line: Mapping[str, Any]) -> bool:
    """A line of rpc mode."""
    match line.get("type"):
        case "response":
            return "command" in line and "success" in line
        case "extension_ui_request":
            return "method" in line and "id" in line
    return False
