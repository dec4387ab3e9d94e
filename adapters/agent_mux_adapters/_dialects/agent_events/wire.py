"""One line of a program: an event of the union, checked, or nothing. Source: docs/reference/agent-protocol.md."""

from collections.abc import Mapping
from typing import Any

import msgspec

from agent_mux.errors import ERROR_CODES
from agent_mux.events import AgentEvent
from agent_mux.events.wire import UnknownEvent, event_from_dict
from agent_mux_adapters._dialects.tolerant import text

_OURS = {"runId": "", "agent": "", "timestamp": 1}
"""Not the program's to say: the mux has its own."""


class Fragment(msgspec.Struct, gc=False):
    """The hot path: all that is read of a line which plainly is a fragment."""

    type: str
    delta: str
    subagent: str | None = msgspec.field(name="subagentId", default=None)


_decode = msgspec.json.Decoder(Fragment).decode


def fragment_of(line: bytes) -> Fragment | None:
    """The fragment that a line may be; its type is still to be looked at."""
    if b'_delta"' not in line:
        return None
    try:
        return _decode(line)
    except (ValueError, RecursionError):
        return None


def event_of(native: Mapping[str, Any]) -> AgentEvent | None:
    """The event, or None where the type is not known, or a field is missing or of another type."""
    try:
        event = event_from_dict(_filled({**native, **_OURS}))
    except (ValueError, TypeError, RecursionError, OverflowError):
        return None
    return None if isinstance(event, UnknownEvent) else event


def _filled(plain: dict[str, Any]) -> dict[str, Any]:
    """What ends a run is not lost because of a word that is not ours, or because one is missing."""
    match plain.get("type"):
        case "error":
            code = plain.get("code")
            plain["code"] = code if code in ERROR_CODES else "INTERNAL"
            said = plain.get("message")
            plain["message"] = said if isinstance(said, str) else f"the program reports an error {text(code)}".rstrip()
            plain["recoverable"] = plain.get("recoverable") is True
        case "auth_error":
            plain["message"], plain["guidance"] = text(plain.get("message")), text(plain.get("guidance"))
        case "tool_call_start":
            plain.setdefault("inputAccumulated", "")
    return plain
