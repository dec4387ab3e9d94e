"""Validation of tool arguments against the declared schema, with coercion of values of a similar type.

A value that matches its schema is never changed. A value that does not match is coerced if one of the known coercions
makes it match, and rejected otherwise. Top-level values are checked by type, `enum` and `const`, through unions and
local references. Nested values are left to the tool; tools made of functions validate them completely.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agent_loop.errors import InvalidArgumentsError
from agent_loop.tools.coercion import NOTHING, coerce, fits, type_of, types_of

SHOWN = 60
"""The most characters of a wrong value that an error message contains."""


@dataclass(frozen=True, slots=True)
class Validated:
    """Arguments that match the schema of the tool."""

    arguments: dict[str, Any]
    coercions: tuple[str, ...] = ()
    """The coercions that were applied, for example "count: string -> integer"."""


def validate_arguments(parameters: Mapping[str, Any], arguments: Mapping[str, Any]) -> Validated:
    """Validate and coerce the arguments of one call.

    A required argument must not be null unless its schema allows null; an optional argument that is null although its
    schema does not allow it is dropped. Unknown arguments are rejected only under `additionalProperties: false`.

    Raises:
        InvalidArgumentsError: The message names every argument that is missing, unknown or invalid.
    """
    properties, required = _properties(parameters), _required(parameters)
    problems = _missing(properties, required, arguments, parameters)
    if parameters.get("additionalProperties") is False:
        problems += _unknown(properties, arguments)
    result: dict[str, Any] = {}
    coercions: list[str] = []
    for name, value in arguments.items():
        schema = properties.get(name, True)
        if fits(value, schema, parameters):
            result[name] = value
        elif value is None:
            coercions.append(f"{name}: null -> left out")
        elif (found := coerce(value, schema, parameters)) is not NOTHING:
            result[name] = found
            coercions.append(f"{name}: {type_of(value)} -> {type_of(found)}")
        else:
            problems.append(f"{name!r} must be {_expected(schema, parameters)}, not {_describe(value)}")
    if problems:
        raise InvalidArgumentsError("; ".join(problems))
    return Validated(result, tuple(coercions))


def _properties(parameters: Mapping[str, Any]) -> Mapping[str, Any]:
    properties = parameters.get("properties")
    return properties if isinstance(properties, Mapping) else {}


def _required(parameters: Mapping[str, Any]) -> frozenset[str]:
    required = parameters.get("required")
    return frozenset(required) if isinstance(required, list | tuple | frozenset) else frozenset()


def _missing(
    properties: Mapping[str, Any], required: frozenset[str], arguments: Mapping[str, Any], root: Mapping[str, Any]
) -> list[str]:
    absent = [
        name
        for name in sorted(required)
        if name not in arguments or (arguments[name] is None and not _allows_null(properties.get(name), root))
    ]
    return [f"required argument {name!r} is {'null' if name in arguments else 'missing'}" for name in absent]


def _allows_null(schema: Any, root: Mapping[str, Any]) -> bool:
    """Whether the schema allows null explicitly; a schema without any type does not."""
    return "null" in types_of(schema, root) and fits(None, schema, root)


def _unknown(properties: Mapping[str, Any], arguments: Mapping[str, Any]) -> list[str]:
    takes = ", ".join(properties) or "none"
    return [f"unknown argument {name[:SHOWN]!r} (it takes {takes})" for name in arguments if name not in properties]


def _expected(schema: Any, root: Mapping[str, Any]) -> str:
    listed = schema.get("enum") if isinstance(schema, Mapping) else None
    if isinstance(listed, list | tuple):
        return f"one of {', '.join(map(repr, listed))}"
    return " or ".join(types_of(schema, root)) or "something else"


def _describe(value: Any) -> str:
    text = repr(value)
    return f"{type_of(value)} {text if len(text) <= SHOWN else text[:SHOWN] + '...'}"
