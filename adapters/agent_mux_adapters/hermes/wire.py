"""Messages of the TUI gateway: decoding of the most frequent lines, and the event kinds that carry no facts.

`tui_gateway/server.py` of Hermes 0.19.0 prints with Python's `json.dumps`: with a space after every colon.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from agent_mux_adapters._dialects.tolerant import mapping, text

TEXT_DELTA = "message.delta"
THINKING_DELTA = "reasoning.delta"


class _Payload(msgspec.Struct, gc=False):
    text: str


class _Params(msgspec.Struct, gc=False):
    type: str
    session_id: str
    payload: _Payload


class GatewayFragment(msgspec.Struct, gc=False):
    """A whole line that streams a fragment of text or thinking."""

    params: _Params


FRAGMENT_STARTS = tuple(
    b'{"jsonrpc": "2.0", "method": "event", "params": {"type": "%b", "session_id": ' % kind.encode()
    for kind in (TEXT_DELTA, THINKING_DELTA)
)
"""The first bytes of the lines that `decode_fragment` decodes in one step."""
decode_fragment = msgspec.json.Decoder(GatewayFragment).decode


class GatewayEvent(msgspec.Struct, frozen=True, gc=False):
    """The parameters of one `event` notification."""

    kind: str
    session: str
    """The id of the live session: a stored session has a new one each time it is opened."""
    payload: Mapping[str, Any]


def read_event(params: Any) -> GatewayEvent:
    """Parse the parameters of an `event`; what is missing or malformed becomes empty."""
    fields = mapping(params)
    return GatewayEvent(text(fields.get("type")), text(fields.get("session_id")), mapping(fields.get("payload")))


def is_gateway_line(value: Any) -> bool:
    """Return whether a line is an event of the gateway, or its answer to the request that opens a session."""
    line = mapping(value)
    if line.get("jsonrpc") != "2.0":
        return False
    if line.get("method") == "event":
        return "." in text(mapping(line.get("params")).get("type"))
    result = mapping(line.get("result"))
    return "session_id" in result and "message_count" in result


_FOR_PEOPLE = "for people at a terminal or a desktop"
_BACKGROUND = "a prompt that another client runs beside the session"

IGNORED_KINDS = {
    "agent.terminal.output": "the output of a background command, whose call ended when it was started",
    "background.complete": _BACKGROUND,
    "billing.step_up.verification": _FOR_PEOPLE,
    "browser.progress": _FOR_PEOPLE,
    "gateway.ready": "no session is open yet",
    "moa.aggregating": "several models answer together; the answer follows",
    "moa.reference": "a draft of another model, of which the answer is made",
    "notification.clear": _FOR_PEOPLE,
    "pet.generate.progress": _FOR_PEOPLE,
    "pet.hatch.progress": _FOR_PEOPLE,
    "preview.restart.complete": _BACKGROUND,
    "preview.restart.progress": _BACKGROUND,
    "reaction": _FOR_PEOPLE,
    "reasoning.available": "the beginning of the answer, once more",
    "secret.expire": "the secret was not given",
    "session.title": _FOR_PEOPLE,
    "skin.changed": _FOR_PEOPLE,
    "sudo.expire": "the password was not given",
    "terminal.close": _FOR_PEOPLE,
    "voice.status": _FOR_PEOPLE,
    "voice.transcript": _FOR_PEOPLE,
}
"""Event kinds without facts about the run -> why they are ignored: all of 0.19.0 that the reader does not read."""
OTHER_SESSION = "about another session of this gateway"
