"""Events as JSON: camelCase names, absent fields left out, one compact object per event.

`accumulated=False` leaves out the text-so-far of the delta events, which makes a long stream linear in size;
`decode_event` takes both forms, and a `Rebuilder` gives a whole stream back what was left out.


Reading a compact stream: every delta gets its text so far back.
"""

from typing import Any

import msgspec

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


def _to_compact(value: Any) -> Any:
    # What is left out anyway is not made a string first: that would cost the text so far for every delta.
    return "" if isinstance(value, Accumulated) else _to_wire(value)


def _from_wire(kind: type, value: Any) -> Any:
    if kind is not Accumulated:
        raise NotImplementedError(f"cannot read {kind.__name__} from the wire")
    if not isinstance(value, str):
        raise TypeError(f"Expected `str`, got `{type(value).__name__}`")  # which msgspec makes a ValidationError of
    return Accumulated.of(value)


_ENCODER = msgspec.json.Encoder(enc_hook=_to_wire)
_DECODER: msgspec.json.Decoder[AgentEvent] = msgspec.json.Decoder(AgentEvent, dec_hook=_from_wire)
_KNOWN = frozenset(event.type for event in ALL_EVENTS)
GROWING: dict[str, str] = {
    TextDeltaEvent.type: "accumulated",
    ThinkingDeltaEvent.type: "accumulated",
    ToolInputDeltaEvent.type: "inputAccumulated",
}
"""The field that a compact stream leaves out, by event type."""


def event_to_dict(event: BaseEvent, *, accumulated: bool = True) -> dict[str, Any]:
    """The event as it would be on the wire, as plain Python values."""
    if isinstance(event, UnknownEvent):
        return dict(event.fields)
    hook = _to_wire if accumulated else _to_compact
    try:
        plain: dict[str, Any] = msgspec.to_builtins(event, enc_hook=hook)
    except RecursionError:
        plain = msgspec.to_builtins(sanitize_unicode(event), enc_hook=hook)
    if not accumulated:
        plain.pop(GROWING.get(event.type, ""), None)
    return plain


def encode_event(event: BaseEvent, *, accumulated: bool = True) -> bytes:
    """The event as one line of JSON, without the newline. What JSON cannot hold is mended, see `mending`."""
    whole = accumulated and not isinstance(event, UnknownEvent)
    try:
        return _ENCODER.encode(event if whole else event_to_dict(event, accumulated=accumulated))
    except (UnicodeEncodeError, RecursionError):
        return _ENCODER.encode(sanitize_unicode(event_to_dict(event, accumulated=accumulated)))


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
    growing = GROWING.get(kind) if isinstance(kind, str) else None
    if growing is not None and growing not in plain:
        plain = {**plain, growing: plain.get("delta", "")}
    event: AgentEvent = msgspec.convert(plain, AgentEvent, dec_hook=_from_wire)
    return event


def json_schema(*, accumulated: bool = True) -> dict[str, Any]:
    """The JSON Schema (2020-12) of one event line; `accumulated=False`: of the compact form."""
    (reference,), components = msgspec.json.schema_components(
        (AgentEvent,), schema_hook=_schema_of, ref_template="#/$defs/{name}"
    )
    for component in components.values():
        _without_nulls(component)
        kind = component["properties"].get("type", {}).get("enum", [""])[0]
        if not accumulated and kind in GROWING:
            del component["properties"][GROWING[kind]]
            component["required"].remove(GROWING[kind])
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "AgentEvent",
        **reference,
        "$defs": components,
    }


def _schema_of(kind: type) -> dict[str, Any]:
    if kind is Accumulated:
        return {"type": "string", "description": "All text so far, this delta included."}
    raise NotImplementedError(kind)


def _without_nulls(component: dict[str, Any]) -> None:
    """A field that is not there is left out; it is never null."""
    for name, shape in component["properties"].items():
        if shape.pop("default", ...) is None:
            (component["properties"][name],) = (choice for choice in shape["anyOf"] if choice != {"type": "null"})


_Prose = MessageStartEvent | ThinkingStartEvent | TextDeltaEvent | ThinkingDeltaEvent | MessageStopEvent
_Tool = ToolCallStartEvent | ToolInputDeltaEvent | ToolCallReadyEvent | ToolResultEvent | ToolErrorEvent


class Rebuilder:
    """Reads a stream line by line and rebuilds the text so far, in O(1) per delta.

    Compact and full lines may be mixed. A reader that joins in the middle takes the text so far from the first
    delta it sees, which is all of it in a full stream and the delta alone in a compact one.
    """

    def __init__(self) -> None:
        self._texts: dict[tuple[str, str | None], GrowingText] = {}

    def decode(self, line: bytes | str) -> AgentEvent | UnknownEvent:
        """As `decode_event`, with the text so far rebuilt from the deltas before this one."""
        event = decode_event(line)
        match event:
            case MessageStartEvent() | ThinkingStartEvent():
                self._texts[_flow(event)] = GrowingText()
            case ToolCallStartEvent():
                self._texts[_flow(event)] = GrowingText()
                self._texts[_flow(event)].append(event.input_accumulated)
            case TextDeltaEvent() | ThinkingDeltaEvent():
                view = self._grown(_flow(event), event.delta, event.accumulated_view)
                return msgspec.structs.replace(event, accumulated_view=view)
            case ToolInputDeltaEvent():
                view = self._grown(_flow(event), event.delta, event.input_accumulated_view)
                return msgspec.structs.replace(event, input_accumulated_view=view)
            case MessageStopEvent() | ThinkingStopEvent() | ToolCallReadyEvent() | ToolResultEvent() | ToolErrorEvent():
                self._texts.pop(_flow(event), None)
        return event

    def _grown(self, flow: tuple[str, str | None], delta: str, received: Accumulated) -> Accumulated:
        if flow in self._texts:
            return self._texts[flow].append(delta)
        self._texts[flow] = GrowingText()
        return self._texts[flow].append(str(received))


def _flow(event: _Prose | ThinkingStopEvent | _Tool) -> tuple[str, str | None]:
    """Which text an event belongs to: a tool call's input, or the one message or thinking of its agent."""
    if isinstance(event, _Tool):
        return "tool", event.tool_call_id
    is_thinking = isinstance(event, ThinkingStartEvent | ThinkingDeltaEvent | ThinkingStopEvent)
    return "thinking" if is_thinking else "message", event.subagent_id
