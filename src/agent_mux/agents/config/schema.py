"""What is known of the fields of a configuration, as JSON Schema and as a check."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent_mux.sdk.config import AgentConfig, Field, Kind, Scope
from agent_mux.sdk.documents import parse_field
from agent_mux.sdk.documents.document import MISSING, value_at

_TYPES: Mapping[Kind, tuple[str, tuple[type, ...]]] = {
    "string": ("string", (str,)),
    "number": ("number", (int, float)),
    "boolean": ("boolean", (bool,)),
    "list": ("array", (list,)),
    "table": ("object", (dict,)),
}


@dataclass(frozen=True, slots=True)
class ConfigProblem:
    """Something that the agent will not understand."""

    scope: Scope
    path: Path
    field: str | None
    """None: the file as a whole."""
    said: str
    """What is wrong, or what is allowed."""
    value: Any = None


def config_schema(title: str, config: AgentConfig) -> dict[str, Any]:
    """JSON Schema of the known fields; it allows any others."""
    schema: dict[str, Any] = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"Configuration of {title}: the fields that are known",
        "type": "object",
        "properties": {},
    }
    for name, field in config.fields.items():
        holder = schema
        for part in parse_field(name)[:-1]:
            holder = holder.setdefault("properties", {}).setdefault(part, {"type": "object"})
        known = holder.setdefault("properties", {}).setdefault(parse_field(name)[-1], {})
        known.update({**_alternatives(field), "description": field.meaning})
    return schema


def find_problems(config: AgentConfig, scope: Scope, path: Path, data: Mapping[str, Any]) -> list[ConfigProblem]:
    """Values that known fields cannot have."""
    found = []
    for name, field in config.fields.items():
        value = value_at(data, parse_field(name))
        if value is not MISSING and not _fits(field, value):
            found.append(ConfigProblem(scope, path, name, _allowed(field), value))
    return found


def _alternatives(field: Field) -> dict[str, Any]:
    first = {"type": _TYPES[field.kind][0], **({"enum": list(field.choices)} if field.choices else {})}
    others = [{"type": _TYPES[kind][0]} for kind in field.or_kinds]
    return {"anyOf": [first, *others]} if others else first


def _fits(field: Field, value: Any) -> bool:
    chosen = not field.choices or value in field.choices
    return (_is_a(field.kind, value) and chosen) or any(_is_a(kind, value) for kind in field.or_kinds)


def _is_a(kind: Kind, value: Any) -> bool:
    return isinstance(value, _TYPES[kind][1]) and (kind == "boolean" or not isinstance(value, bool))


def _allowed(field: Field) -> str:
    first = f"one of {', '.join(field.choices)}" if field.choices else f"a {field.kind}"
    return " or ".join((first, *(f"a {kind}" for kind in field.or_kinds)))
