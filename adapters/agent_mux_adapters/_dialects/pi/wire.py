"""Native shapes that are decoded without the rest of their line, chunks of long lines, and recognition of the dialect.

Until 0.73 every `message_update` repeats the accumulated message, twice; `agent_end` repeats all messages of the run.
msgspec skips what a shape does not name, so such lines cost little more than one pass over their bytes. All other
lines are decoded as plain objects.
"""

import base64
import binascii
import re
from collections.abc import Mapping
from typing import Any

import msgspec

from agent_mux_adapters._dialects.tolerant import mapping, text, whole

UPDATE_START = b'{"type":"message_update",'
PARTIAL = b'","partial":{'
"""Where the text of an update ends and the repetition begins; within a JSON string the quotes would be escaped."""
_ELISION = b" elided for RPC frame]"
_ELIDED = re.compile(rb"(?:\xe2\x80\xa6|\\u2026)\[\d{1,12} (?:chars|items) elided for RPC frame\]")
"""omp's mark for what it left out of a line above 1 MiB, in version 1 of its protocol."""
_EVENTS: Mapping[str, str] = {
    "agent_end": "messages",
    "message_end": "message",
    "message_start": "message",
    "message_update": "assistantMessageEvent",
    "tool_execution_end": "toolCallId",
    "tool_execution_start": "toolCallId",
    "turn_end": "toolResults",
}
"""Event type -> a field that distinguishes it from other agents' events of the same type."""


class UpdateEvent(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The event of one content block in the message that the model is writing."""

    type: str
    content_index: int = 0
    delta: str = ""
    content: str = ""
    """The whole text of the block, at its end."""
    tool_call: msgspec.Raw = msgspec.Raw(b"null")
    id: str = ""
    tool_name: str = ""
    """Like `id`, only since 0.87 and at the start of a tool call."""


class Update(msgspec.Struct, frozen=True, gc=False):
    """A `message_update` line, reduced to its event."""

    event: UpdateEvent = msgspec.field(name="assistantMessageEvent")


class AgentEnd(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """An `agent_end` line, reduced to the fields that decide whether the turn is over."""

    type: str
    will_retry: Any = msgspec.UNSET
    """Whether another attempt follows; pi since 0.87."""
    is_terminal: Any = msgspec.UNSET
    """omp: False when a background job will wake the agent again."""


class _Block(msgspec.Struct, frozen=True, gc=False):
    id: Any = None
    name: Any = None


class _Partial(msgspec.Struct, frozen=True, gc=False):
    content: list[_Block] = []


class _Repeating(msgspec.Struct, frozen=True, gc=False):
    partial: _Partial = _Partial()


class _RepeatingUpdate(msgspec.Struct, frozen=True, gc=False):
    event: _Repeating = msgspec.field(name="assistantMessageEvent")


_decode_update = msgspec.json.Decoder(Update).decode
_decode_repeating = msgspec.json.Decoder(_RepeatingUpdate).decode
_decode_agent_end = msgspec.json.Decoder(AgentEnd).decode


def decode_update(line: bytes) -> UpdateEvent | None:
    """Decode the event of a `message_update` line; None when it does not have the known shape."""
    cut = line.find(PARTIAL)
    if cut > 0 and line.endswith(b"}"):
        line = line[: cut + 1] + b"}}"
    try:
        return _decode_update(line).event
    except (ValueError, RecursionError):
        return None


def decode_agent_end(line: bytes) -> AgentEnd | None:
    """Decode an `agent_end` line without its messages; None for other shapes."""
    try:
        return _decode_agent_end(line)
    except (ValueError, RecursionError):
        return None


def begun_call(line: bytes, index: int) -> tuple[str, str]:
    """Return id and name of a starting call from the repeated message (until 0.73); empty strings when missing."""
    try:
        block = _decode_repeating(line).event.partial.content[index]
    except (ValueError, RecursionError, IndexError):
        return "", ""
    named = isinstance(block.id, str) and isinstance(block.name, str)
    return (block.id, block.name) if named else ("", "")


class LineChunks:
    """The `rpc_chunk` lines of a line longer than 1 MiB (omp, protocol 2, if the client asks for chunks)."""

    def __init__(self) -> None:
        self._id = ""
        self._parts: list[bytes] = []

    def add(self, line: Mapping[str, Any]) -> bytes | None:
        """Add one chunk; return the line when it is complete."""
        if text(line.get("chunkId")) != self._id or whole(line.get("index")) != len(self._parts):
            self._id, self._parts = text(line.get("chunkId")), []
        try:
            self._parts.append(base64.b64decode(text(line.get("data"))))
        except (binascii.Error, ValueError):
            self._parts.append(b"")
        if len(self._parts) < whole(line.get("count")):
            return None
        parts, self._parts = self._parts, []
        return b"".join(parts)


def is_last_chunk(line: Mapping[str, Any]) -> bool:
    """Return whether an `rpc_chunk` is the last one of its line."""
    return whole(line.get("index")) == whole(line.get("count")) - 1


def is_shortened(line: bytes) -> bool:
    """Return whether the agent left out parts of a line."""
    return _ELISION in line and _ELIDED.search(line) is not None


def is_event(value: Any) -> bool:
    """Return whether a line is an event of either mode; a session header counts only with the version of its file."""
    line = mapping(value)
    kind = line.get("type")
    if kind == "session":
        return "version" in line and "cwd" in line
    return isinstance(kind, str) and kind in _EVENTS and _EVENTS[kind] in line


def is_rpc_line(value: Any) -> bool:
    """Return whether a line is printed in rpc mode only."""
    line = mapping(value)
    match line.get("type"):
        case "response":
            return "command" in line and "success" in line
        case "extension_ui_request":
            return "method" in line and "id" in line
    return False
