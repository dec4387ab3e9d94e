"""The known fields of an agent's configuration: their JSON Schema and their validation."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent_mux.sdk.config import AgentConfig, ConfigField, FieldKind, Scope
from agent_mux.sdk.documents import parse_field
from agent_mux.sdk.documents.document import MISSING, value_at

_TYPES: Mapping[FieldKind, tuple[str, tuple[type, ...]]] = {
    "string": ("string", (str,)),
    "number": ("number", (int, float)),
    "boolean": ("boolean", (bool,)),
    "list": ("array", (list,)),
    "table": ("object", (dict,)),
}


@dataclass(frozen=True, slots=True)
class ConfigProblem:
    """A value or file that the agent does not understand."""

    scope: Scope
    """Whether the file belongs to the user (`global`), the project, or the project's local settings."""
    path: Path
    """Absolute path of the file."""
    field: str | None
    """The dotted name of the field; None: the file as a whole."""
    message: str
    """The allowed values of the field, or the error in the file."""
    value: Any = None
    """The value that is not allowed; None for a file that cannot be read."""


def config_schema(title: str, config: AgentConfig) -> dict[str, Any]:
    """Return a JSON Schema of the known fields; it allows other fields."""
    schema: dict[str, Any] = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"Configuration of {title}: known fields",
        "type": "object",
        "properties": {},
    }
    for name, field in config.fields.items():
        parent = schema
        for part in parse_field(name)[:-1]:
            parent = parent.setdefault("properties", {}).setdefault(part, {"type": "object"})
        known = parent.setdefault("properties", {}).setdefault(parse_field(name)[-1], {})
        known.update({**_field_schema(field), "description": field.meaning})
    return schema


def find_problems(config: AgentConfig, scope: Scope, path: Path, data: Mapping[str, Any]) -> list[ConfigProblem]:
    """Return the known fields with values that are not allowed."""
    found = []
    for name, field in config.fields.items():
        value = value_at(data, parse_field(name))
        if value is not MISSING and not _is_allowed(field, value):
            found.append(ConfigProblem(scope, path, name, _describe_allowed(field), value))
    return found


def _field_schema(field: ConfigField) -> dict[str, Any]:
    first = {"type": _TYPES[field.kind][0], **({"enum": list(field.choices)} if field.choices else {})}
    others = [{"type": _TYPES[kind][0]} for kind in field.or_kinds]
    return {"anyOf": [first, *others]} if others else first


def _is_allowed(field: ConfigField, value: Any) -> bool:
    is_choice = not field.choices or value in field.choices
    return (_has_kind(field.kind, value) and is_choice) or any(_has_kind(kind, value) for kind in field.or_kinds)


def _has_kind(kind: FieldKind, value: Any) -> bool:
    return isinstance(value, _TYPES[kind][1]) and (kind == "boolean" or not isinstance(value, bool))


def _describe_allowed(field: ConfigField) -> str:
    first = f"one of {', '.join(field.choices)}" if field.choices else f"a {field.kind}"
    return " or ".join((first, *(f"a {kind}" for kind in field.or_kinds)))
