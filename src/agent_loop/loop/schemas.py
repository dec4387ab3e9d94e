"""The schema of a structured answer as the arguments of a tool, which must be an object."""

from collections.abc import Mapping
from typing import Any

from agent_loop.errors import InvalidArgumentsError
from agent_loop.json_schema import misfit
from agent_loop.tools.coercion import type_of
from agent_loop.tools.validation import validate_arguments

DEFINITIONS = ("$defs", "definitions")
"""What references of a schema lead to: they begin at its root."""
OTHERWISE = frozenset({"anyOf", "oneOf", "allOf", "$ref", "enum", "const"})
"""Without a type, these say what else a value may be."""


def is_object(schema: Mapping[str, Any]) -> bool:
    """Whatever fits it is an object."""
    return schema["type"] == "object" if "type" in schema else not OTHERWISE & schema.keys()


def wrapped(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema as one of a tool's arguments."""
    if is_object(schema):
        return dict(schema)
    roots = {key: schema[key] for key in DEFINITIONS if key in schema}
    value = {key: each for key, each in schema.items() if key not in roots}
    return {"type": "object", "properties": {"value": value}, "required": ["value"], **roots}


def unwrapped(schema: Mapping[str, Any], arguments: Mapping[str, Any]) -> Any:
    """The value in a tool's arguments."""
    return dict(arguments) if is_object(schema) else arguments.get("value")


def fitting(schema: Mapping[str, Any], value: Any) -> Any:
    """The value, coerced at its top level where that was necessary.

    Raises `InvalidArgumentsError` where it does not fit, at whatever depth, and `ConfigurationError` where the schema
    refers to what is not in it.
    """
    given = value if is_object(schema) else {"value": value}
    if not isinstance(given, Mapping):
        raise InvalidArgumentsError(f"the answer must be an object, not {type_of(given)}")
    found = unwrapped(schema, validate_arguments(wrapped(schema), given).arguments)
    problem = misfit(schema, found)
    if problem is not None:
        raise InvalidArgumentsError(problem)
    return found
