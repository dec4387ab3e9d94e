"""Events and responses as JSON lines. Source: the agent protocol, "Events", "`response`"."""

from typing import Any

from agent_loop.cli.stream import Told
from agent_mux.events import encode_event, event_to_dict
from agent_mux.plain_json import to_json, to_json_bytes


def event_line(told: Told) -> str:
    """The event as a line, without the text so far of its deltas: that costs the square of the text."""
    if not told.extra:
        return encode_event(told.event, accumulated=False).decode() + "\n"
    return to_json_bytes({**event_to_dict(told.event, accumulated=False), **told.extra}).decode() + "\n"


def accepted(command_id: str, delivery: str | None = None) -> str:
    """A control line was carried out."""
    return _response(id=command_id, accepted=True, delivery=delivery)


def refused(command_id: str | None, code: str, message: str) -> str:
    """A control line was not carried out."""
    return _response(id=command_id, accepted=False, code=code, message=message)


def _response(**fields: Any) -> str:
    return to_json({"type": "response", **{name: value for name, value in fields.items() if value is not None}}) + "\n"
