"""Events as JSON: camelCase names, absent fields left out, one compact object per event.

`accumulated=False` leaves out the text-so-far of the delta events, which makes a long stream linear in size;
`decode_event` takes both forms and can rebuild what was left out (see `Rebuilder`).
"""

from typing import Any

import msgspec

from agent_mux.events.accumulated import Accumulated, GrowingText
from agent_mux.events.base import BaseEvent
from agent_mux.events.text import TextDeltaEvent
from agent_mux.events.thinking import ThinkingDeltaEvent
from agent_mux.events.tool import ToolInputDeltaEvent
from agent_mux.events.union import ALL_EVENTS, AgentEvent


class UnknownEvent(BaseEvent, frozen=True, tag="unknown"):
    """An event of a type this version does not know, from a newer peer. `fields` is the whole object."""

    fields: dict[str, Any] = msgspec.field(default_factory=dict)

    @property
    def native_type(self) -> str:
        """The type literal as received."""
        return str(self.fields.get("type", ""))


def _to_wire(value: Any) -> Any:
    if isinstance(value, Accumulated):
        return str(value)
    raise NotImplementedError(f"cannot put {type(value).__name__} on the wire")


def _from_wire(kind: type, value: Any) -> Any:
    if kind is Accumulated and isinstance(value, str):
        return Accumulated.of(value)
    raise NotImplementedError(f"cannot read {kind.__name__} from the wire")


_ENCODER = msgspec.json.Encoder(enc_hook=_to_wire)
_DECODER = msgspec.json.Decoder(AgentEvent, dec_hook=_from_wire)
_KNOWN = frozenset(event.type for event in ALL_EVENTS)
_GROWING: dict[str, str] = {
    TextDeltaEvent.type: "accumulated",
    ThinkingDeltaEvent.type: "accumulated",
    ToolInputDeltaEvent.type: "inputAccumulated",
}


def event_to_dict(event: BaseEvent, *, accumulated: bool = True) -> dict[str, Any]:
    """The event as it would be on the wire, as plain Python values."""
    if isinstance(event, UnknownEvent):
        return dict(event.fields)
    plain: dict[str, Any] = msgspec.to_builtins(event, enc_hook=_to_wire)
    if not accumulated:
        plain.pop(_GROWING.get(event.type, ""), None)
    return plain


def encode_event(event: BaseEvent, *, accumulated: bool = True) -> bytes:
    """The event as one line of JSON, without the newline."""
    if isinstance(event, UnknownEvent) or (not accumulated and event.type in _GROWING):
        return _ENCODER.encode(event_to_dict(event, accumulated=accumulated))
    return _ENCODER.encode(event)


def decode_event(line: bytes | str) -> AgentEvent | UnknownEvent:
    """Read one event. A type that this version does not know becomes an `UnknownEvent`, without loss.

    Raises `msgspec.ValidationError` when a known type lacks a field or has a wrong one, and
    `msgspec.DecodeError` when the line is not JSON.
    """
    try:
        return _DECODER.decode(line)
    except msgspec.ValidationError:
        plain = msgspec.json.decode(line)
        if not isinstance(plain, dict):
            raise
        return event_from_dict(plain)


def event_from_dict(plain: dict[str, Any]) -> AgentEvent | UnknownEvent:
    """As `decode_event`, from an object that is already parsed. A compact delta gets its `delta` as text so far."""
    kind = plain.get("type")
    if isinstance(kind, str) and kind not in _KNOWN:
        return UnknownEvent(
            run_id=str(plain.get("runId", "")),
            agent=str(plain.get("agent", "")),
            timestamp=plain["timestamp"] if isinstance(plain.get("timestamp"), int) else 0,
            fields=plain,
        )
    growing = _GROWING.get(kind) if isinstance(kind, str) else None
    if growing is not None and growing not in plain:
        plain = {**plain, growing: plain.get("delta", "")}
    return msgspec.convert(plain, AgentEvent, dec_hook=_from_wire)


class Rebuilder:
    """Reads a compact stream and gives each delta its text so far again, in O(1) per delta."""

    def __init__(self) -> None:
        self._texts: dict[tuple[str, str | None], GrowingText] = {}

    def decode(self, line: bytes | str) -> AgentEvent | UnknownEvent:
        """As `decode_event`, with the text so far rebuilt from the deltas before this one."""
        event = decode_event(line)
        scope = event.subagent_id
        match event.type:
            case "message_start" | "thinking_start":
                self._texts[event.type.removesuffix("_start"), scope] = GrowingText()
            case "text_delta" | "thinking_delta":
                key = ("message" if event.type == "text_delta" else "thinking", scope)
                view = self._texts.setdefault(key, GrowingText()).append(event.delta)  # type: ignore[union-attr]
                return msgspec.structs.replace(event, accumulated_view=view)
            case "tool_input_delta":
                key = (event.tool_call_id, scope)  # type: ignore[union-attr]
                view = self._texts.setdefault(key, GrowingText()).append(event.delta)  # type: ignore[union-attr]
                return msgspec.structs.replace(event, input_accumulated_view=view)
            case "tool_call_ready":
                self._texts.pop((event.tool_call_id, scope), None)  # type: ignore[union-attr]
        return event


def json_schema() -> dict[str, Any]:
    """The JSON Schema (2020-12) of one event line."""

    def growing(kind: type) -> dict[str, Any]:
        if kind is Accumulated:
            return {"type": "string", "description": "All text so far, this delta included; absent in compact streams."}
        raise NotImplementedError(kind)

    (reference,), components = msgspec.json.schema_components(
        (AgentEvent,), schema_hook=growing, ref_template="#/$defs/{name}"
    )
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "AgentEvent",
        **reference,
        "$defs": components,
    }
