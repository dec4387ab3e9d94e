"""The JSON form of events: encoding, decoding, the JSON Schema, and reading compact streams.

Names are in camelCase and absent fields are left out. A compact stream (`accumulated=False`) omits the accumulated text
of the delta events, so that its size is linear; `decode_event` accepts both forms, and `Rebuilder` restores the omitted
text of a whole stream. See docs/spec/events.md, sections 2.2, 2.3 and 24.5.
"""

from functools import cache
from typing import Any

import msgspec

from agent_mux._util.json_schemas import json_schema_components
from agent_mux._util.sanitize import sanitize_unicode
from agent_mux.events.base import BaseEvent
from agent_mux.events.content import (
    Accumulated,
    GrowingText,
    MessageStartEvent,
    MessageStopEvent,
    TextDeltaEvent,
    ThinkingDeltaEvent,
    ThinkingStartEvent,
    ThinkingStopEvent,
)
from agent_mux.events.tools import (
    ToolCallReadyEvent,
    ToolCallStartEvent,
    ToolErrorEvent,
    ToolInputDeltaEvent,
    ToolResultEvent,
)
from agent_mux.events.union import ALL_EVENTS, AgentEvent


class UnknownEvent(BaseEvent, frozen=True, tag="unknown"):
    """An event of a type that this version does not know, from a newer peer. `fields` is the whole object."""

    fields: dict[str, Any] = msgspec.field(default_factory=dict)

    @property
    def native_type(self) -> str:
        """The type literal of the received object."""
        return str(self.fields.get("type", ""))


def _to_wire(value: Any) -> Any:
    if isinstance(value, Accumulated):
        return str(value)
    raise NotImplementedError(f"cannot encode {type(value).__name__}")


def _to_compact(value: Any) -> Any:
    # Omitted text is not converted to a string first, which would cost the accumulated text for every delta.
    return "" if isinstance(value, Accumulated) else _to_wire(value)


def _from_wire(kind: type, value: Any) -> Any:
    if kind is not Accumulated:
        raise NotImplementedError(f"cannot decode {kind.__name__}")
    if not isinstance(value, str):
        raise TypeError(f"Expected `str`, got `{type(value).__name__}`")  # msgspec converts it to a ValidationError
    return Accumulated.of(value)


_ENCODER = msgspec.json.Encoder(enc_hook=_to_wire)
_KNOWN = frozenset(event.type for event in ALL_EVENTS)
ACCUMULATED_FIELDS: dict[str, str] = {
    TextDeltaEvent.type: "accumulated",
    ThinkingDeltaEvent.type: "accumulated",
    ToolInputDeltaEvent.type: "inputAccumulated",
}
"""The field that a compact stream omits, by event type."""


@cache
def _decoder() -> msgspec.json.Decoder[AgentEvent]:
    # Made with the first event: a decoder of all types takes several milliseconds, and most runs decode no event.
    return msgspec.json.Decoder(AgentEvent, dec_hook=_from_wire)


def event_to_dict(event: BaseEvent, *, accumulated: bool = True) -> dict[str, Any]:
    """Return the JSON form of an event as plain Python values."""
    if isinstance(event, UnknownEvent):
        return dict(event.fields)
    hook = _to_wire if accumulated else _to_compact
    try:
        plain: dict[str, Any] = msgspec.to_builtins(event, enc_hook=hook)
    except RecursionError:
        plain = msgspec.to_builtins(sanitize_unicode(event), enc_hook=hook)
    if not accumulated:
        plain.pop(ACCUMULATED_FIELDS.get(event.type, ""), None)
    if "quota" in plain:  # the only field that is a list; msgspec keeps it a tuple
        plain["quota"] = list(plain["quota"])
    return plain


def encode_event(event: BaseEvent, *, accumulated: bool = True) -> bytes:
    """Return the event as one line of JSON without a newline. Text that JSON cannot represent is sanitized."""
    whole = accumulated and not isinstance(event, UnknownEvent)
    try:
        return _ENCODER.encode(event if whole else event_to_dict(event, accumulated=accumulated))
    except (UnicodeEncodeError, RecursionError):
        return _ENCODER.encode(sanitize_unicode(event_to_dict(event, accumulated=accumulated)))


def decode_event(line: bytes | str) -> AgentEvent | UnknownEvent:
    """Decode one event. A type that this version does not know becomes an `UnknownEvent`, without loss.

    Raises:
        msgspec.ValidationError: An event of a known type has a missing or invalid field.
        msgspec.DecodeError: The line is not JSON.
    """
    try:
        return _decoder().decode(line)
    except msgspec.ValidationError:
        plain = msgspec.json.decode(line)
        if not isinstance(plain, dict):
            raise
        return event_from_dict(plain)


def event_from_dict(plain: dict[str, Any]) -> AgentEvent | UnknownEvent:
    """Convert a parsed JSON object to an event, like `decode_event`. A compact delta accumulates its own text only."""
    kind = plain.get("type")
    if isinstance(kind, str) and kind not in _KNOWN:
        return UnknownEvent(
            run_id=str(plain.get("runId", "")),
            agent=str(plain.get("agent", "")),
            timestamp=plain["timestamp"] if isinstance(plain.get("timestamp"), int) else 0,
            fields=plain,
        )
    growing = ACCUMULATED_FIELDS.get(kind) if isinstance(kind, str) else None
    if growing is not None and growing not in plain:
        plain = {**plain, growing: plain.get("delta", "")}
    event: AgentEvent = msgspec.convert(plain, AgentEvent, dec_hook=_from_wire)
    return event


def json_schema(*, accumulated: bool = True) -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of an event; with `accumulated=False`, that of the compact form."""
    (reference,), components = json_schema_components(
        (AgentEvent,), schema_hook=_schema_of, ref_template="#/$defs/{name}"
    )
    for component in components.values():
        _without_nulls(component)
        kind = component["properties"].get("type", {}).get("enum", [""])[0]
        if not accumulated and kind in ACCUMULATED_FIELDS:
            del component["properties"][ACCUMULATED_FIELDS[kind]]
            component["required"].remove(ACCUMULATED_FIELDS[kind])
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "AgentEvent",
        **reference,
        "$defs": components,
    }


def _schema_of(kind: type) -> dict[str, Any]:
    if kind is Accumulated:
        return {"type": "string", "description": "The accumulated text, this delta included."}
    raise NotImplementedError(kind)


def _without_nulls(component: dict[str, Any]) -> None:
    # An absent field is left out and never null.
    for name, shape in component["properties"].items():
        if shape.pop("default", ...) is None and "anyOf" in shape:
            (component["properties"][name],) = (choice for choice in shape["anyOf"] if choice != {"type": "null"})


_BlockEvent = MessageStartEvent | ThinkingStartEvent | TextDeltaEvent | ThinkingDeltaEvent | MessageStopEvent
_ToolEvent = ToolCallStartEvent | ToolInputDeltaEvent | ToolCallReadyEvent | ToolResultEvent | ToolErrorEvent


class Rebuilder:
    """Decodes a stream line by line and restores the accumulated text, in O(1) per delta.

    Compact and full lines may be mixed. If the stream begins inside a text, the accumulated text begins with that of
    the first delta: the whole text in a full stream, the delta alone in a compact one.
    """

    def __init__(self) -> None:
        self._texts: dict[tuple[str, str | None], GrowingText] = {}

    def decode(self, line: bytes | str) -> AgentEvent | UnknownEvent:
        """Decode one event, like `decode_event`, with the accumulated text restored from the deltas before it."""
        event = decode_event(line)
        match event:
            case MessageStartEvent() | ThinkingStartEvent():
                self._texts[_key_of(event)] = GrowingText()
            case ToolCallStartEvent():
                self._texts[_key_of(event)] = GrowingText()
                self._texts[_key_of(event)].append(event.input_accumulated)
            case TextDeltaEvent() | ThinkingDeltaEvent():
                view = self._extend(_key_of(event), event.delta, event.accumulated_view)
                return msgspec.structs.replace(event, accumulated_view=view)
            case ToolInputDeltaEvent():
                view = self._extend(_key_of(event), event.delta, event.input_accumulated_view)
                return msgspec.structs.replace(event, input_accumulated_view=view)
            case MessageStopEvent() | ThinkingStopEvent() | ToolCallReadyEvent() | ToolResultEvent() | ToolErrorEvent():
                self._texts.pop(_key_of(event), None)
        return event

    def _extend(self, key: tuple[str, str | None], delta: str, received: Accumulated) -> Accumulated:
        if key in self._texts:
            return self._texts[key].append(delta)
        self._texts[key] = GrowingText()
        return self._texts[key].append(str(received))


def _key_of(event: _BlockEvent | ThinkingStopEvent | _ToolEvent) -> tuple[str, str | None]:
    """Return the key of the text to which an event belongs: a call's input, or the message or thinking of an agent."""
    if isinstance(event, _ToolEvent):
        return "tool", event.tool_call_id
    is_thinking = isinstance(event, ThinkingStartEvent | ThinkingDeltaEvent | ThinkingStopEvent)
    return "thinking" if is_thinking else "message", event.subagent_id
