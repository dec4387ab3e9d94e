"""The event reference, from the event classes and the rules of the contract."""

import inspect as python_inspect
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from msgspec import inspect

from agent_mux._util.field_descriptions import field_descriptions_of
from agent_mux.contract import RULES
from agent_mux.events import CATEGORIES, CostRecord, QuotaWindow, encode_event, event_from_dict
from agent_mux.events.base import BaseEvent

TITLES = {
    "session": "Session lifecycle",
    "turn": "Turns and steps",
    "text": "Text",
    "thinking": "Thinking",
    "tool": "Tool calls",
    "file": "File operations",
    "shell": "Shell operations",
    "mcp": "MCP tool calls",
    "subagent": "Sub-agents",
    "plugin": "Plugins",
    "skill": "Skills and agent documents",
    "multimodal": "Images",
    "cost": "Cost and tokens",
    "interaction": "Interaction",
    "rate_limit": "Rate and context limits",
    "run_lifecycle": "Run control",
    "error": "Errors",
    "debug": "Diagnostics",
}
FIRST_SECTION = 5  # the categories are sections 5 to 22 of docs/spec/events.md, in order
INTRODUCTION = """# Events

<!-- Written by docs/generate.py from the models. Do not edit. -->

Every run is a stream of these {count} events, with every agent. On the wire an event is one JSON object with camelCase
names (`runId`); in Python it is an immutable object with snake_case attributes (`run_id`), one class per type
(`text_delta` is `TextDeltaEvent`). Absent fields are left out and never null. Ignore types and fields that you do not
know: they come from a newer version. All rules are in the [event specification](../spec/events.md).

A compact stream omits the accumulated text of the delta events (`accumulated`, `inputAccumulated`);
`agent_mux.events.Rebuilder` restores it. `agent_mux.events.json_schema()` returns the JSON Schema of an event.
"""
ORDER = """## Order

`agent_mux.contract.validate(events)` checks these rules and those of each category below. The number is the section of
the [event specification](../spec/events.md).
"""
CITATION = re.compile(r"(?:Source: agent-events spec,|See docs/spec/events\.md,) section (\d+(?:\.\d+)*)")
SAMPLES: dict[str, Any] = json.loads(Path(__file__).with_name("event_samples.json").read_text(encoding="utf-8"))
"""Values for the examples, by `type.field` or by `field`."""


def events_page() -> str:
    """Return the page."""
    parts = [INTRODUCTION.format(count=sum(map(len, CATEGORIES.values())))]
    parts.append("## Fields of every event\n\n`type` (the name of the event) comes first.\n")
    parts.append(_table(BaseEvent))
    parts.append(ORDER)
    parts.append(_rules("2", "23", "25"))
    for number, (name, events) in enumerate(CATEGORIES.items(), FIRST_SECTION):
        parts.append(f"## {TITLES[name]}\n")
        parts.append(_rules(str(number)))
        parts.extend(_event_section(event) for event in events)
        if name == "cost":
            for record in (CostRecord, QuotaWindow):
                parts.append(f"### `{record.__name__}`\n\n{_docstring(record)}\n")
                parts.append(_table(record))
    return "\n".join(part for part in parts if part)


def _rules(*sections: str) -> str:
    lines = [f"- {rule}: {text}.\n" for rule, text in RULES.items() if rule.split(".")[0] in sections]
    return "".join(lines)


def _event_section(event: type[BaseEvent]) -> str:
    parts = (f"### `{event.type}`\n", f"{_docstring(event)}\n", _table(event), f"```json\n{_example(event)}\n```\n")
    return "\n".join(part for part in parts if part)


def _docstring(kind: type) -> str:
    """Return the docstring of an event class, with its citation as a link to the specification."""
    text = " ".join((python_inspect.getdoc(kind) or "").split())
    return CITATION.sub(r"[Section \1](../spec/events.md)", text)


def _table(kind: type[msgspec.Struct]) -> str:
    own = [row for row in _rows(kind) if kind is BaseEvent or not _is_base_field(kind, row[0])]
    if not own:
        return ""
    rows = [f"| `{name}` | {shape} | {needed} | {meaning} |\n" for name, shape, needed, meaning in own]
    return "| field | type | | meaning |\n|---|---|---|---|\n" + "".join(rows)


def _is_base_field(kind: type[msgspec.Struct], name: str) -> bool:
    base = {field.encode_name: field.required for field in msgspec.structs.fields(BaseEvent)}
    ours = {field.encode_name: field.required for field in msgspec.structs.fields(kind)}
    return issubclass(kind, BaseEvent) and base.get(name) == ours[name]


def _rows(kind: type[msgspec.Struct]) -> Iterator[tuple[str, str, str, str]]:
    shape = inspect.type_info(kind)
    meanings = field_descriptions_of(kind)
    if isinstance(shape, inspect.StructType):
        for field in shape.fields:
            needed = "required" if field.required else "optional"
            yield field.encode_name, _type_name(field.type), needed, meanings[field.name].replace("\n", " ")


def _type_name(shape: inspect.Type) -> str:  # noqa: PLR0911  # one return for each kind of type
    match shape:
        case inspect.Metadata():
            return _type_name(shape.type)
        case inspect.UnionType():
            return " \\| ".join(
                _type_name(choice) for choice in shape.types if not isinstance(choice, inspect.NoneType)
            )
        case inspect.LiteralType():
            return " \\| ".join(f'`"{value}"`' for value in shape.values)
        case inspect.IntType():
            low = shape.ge if shape.ge is not None else shape.gt
            return "integer" if low is None else f"integer {'≥' if shape.gt is None else '>'} {low:g}"
        case inspect.FloatType(le=high) if high is not None:
            return f"number {shape.ge:g} to {high:g}"
        case inspect.VarTupleType():
            return f"array of {_type_name(shape.item_type)}"
        case inspect.ListType():
            return f"list of {_type_name(shape.item_type)}"
        case inspect.StructType():
            return f"[`{shape.cls.__name__}`](#{shape.cls.__name__.lower()})"
    return _PLAIN[type(shape)]


_PLAIN: dict[type[inspect.Type], str] = {
    inspect.StrType: "string",
    inspect.CustomType: "string",
    inspect.BoolType: "boolean",
    inspect.FloatType: "number ≥ 0",
    inspect.AnyType: "any JSON",
}


def _example(event: type[BaseEvent]) -> str:
    plain: dict[str, Any] = {"type": event.type}
    for field in msgspec.structs.fields(event):
        if field.required:
            plain[field.encode_name] = _sample(event.type, field)
    return encode_event(event_from_dict(plain)).decode()


def _sample(kind: str, field: msgspec.structs.FieldInfo) -> Any:
    name = field.encode_name
    if f"{kind}.{name}" in SAMPLES:
        return SAMPLES[f"{kind}.{name}"]
    return SAMPLES[name] if name in SAMPLES else _any_value(name, inspect.type_info(field.type))


def _any_value(name: str, shape: inspect.Type) -> Any:
    match shape:
        case inspect.Metadata():
            return _any_value(name, shape.type)
        case inspect.StrType():
            return name
        case inspect.LiteralType():
            return shape.values[0]
        case inspect.BoolType():
            return False
    return 0
