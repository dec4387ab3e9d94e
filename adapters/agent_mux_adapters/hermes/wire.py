"""The two commonest lines of the TUI gateway, decoded in one go, and how every other one is taken apart.

Source: `tui_gateway/server.py` of Hermes 0.19.0. It prints with Python's `json.dumps`: a space after every colon.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from agent_mux_adapters._dialects.tolerant import mapping, text

TEXT = "message.delta"
REASONING = "reasoning.delta"


class _Payload(msgspec.Struct, gc=False):
    text: str


class _Params(msgspec.Struct, gc=False):
    type: str
    session_id: str
    payload: _Payload


class Fragment(msgspec.Struct, gc=False):
    """A whole line that streams a fragment of text or of reasoning."""

    params: _Params


FRAGMENT_STARTS = tuple(
    b'{"jsonrpc": "2.0", "method": "event", "params": {"type": "%b", "session_id": ' % kind.encode()
    for kind in (TEXT, REASONING)
)
decode_fragment = msgspec.json.Decoder(Fragment).decode


class Event(msgspec.Struct, frozen=True, gc=False):
    """One `event` notification, taken apart."""

    kind: str
    session: str
    """The live session's id: one for each time a stored session is opened."""
    payload: Mapping[str, Any]


def read_event(params: Any) -> Event:
    """The parameters of an `event`."""
    fields = mapping(params)
    return Event(text(fields.get("type")), text(fields.get("session_id")), mapping(fields.get("payload")))
