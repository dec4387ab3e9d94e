"""Arguments as the tool declares them, also where the model wrote them a little differently.

Source: zidane, "Tool argument auto-coercion". What fits is never changed; what does not fit is coerced where one of the
listed coercions makes it fit, and refused otherwise. Values at the top level are checked by type, `enum` and `const`,
through unions and local references. What is deeper is for the tool: tools made of functions check all of it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agent_loop.errors import InvalidArgumentsError
from agent_loop.tools.coercion import NOTHING, coerced, fits, type_of, types_of

SHOWN = 60
"""Characters of a wrong value that an error repeats."""


@dataclass(frozen=True, slots=True)
class Validated:
    """Arguments that fit."""

    arguments: dict[str, Any]
    coercions: tuple[str, ...] = ()
    """What was changed, a phrase for each: "count: string -> integer"."""


def validate_arguments(parameters: Mapping[str, Any], arguments: Mapping[str, Any]) -> Validated:
    """Check and coerce the arguments of one call.

    A null fails where it is required, unless the schema itself allows null; for an optional argument that must not be
    null it counts as left out. Unknown arguments fail only where the schema says `additionalProperties: false`.

    Raises:
        InvalidArgumentsError: naming every argument that is missing, unknown or unusable.
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
        elif (found := coerced(value, schema, parameters)) is not NOTHING:
            result[name] = found
            coercions.append(f"{name}: {type_of(value)} -> {type_of(found)}")
        else:
            problems.append(f"{name!r} must be {_wanted(schema, parameters)}, not {_shown(value)}")
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
    """It says so; a schema that says nothing of types does not."""
    return "null" in types_of(schema, root) and fits(None, schema, root)


def _unknown(properties: Mapping[str, Any], arguments: Mapping[str, Any]) -> list[str]:
    takes = ", ".join(properties) or "none"
    return [f"unknown argument {name[:SHOWN]!r} (it takes {takes})" for name in arguments if name not in properties]


def _wanted(schema: Any, root: Mapping[str, Any]) -> str:
    listed = schema.get("enum") if isinstance(schema, Mapping) else None
    if isinstance(listed, list | tuple):
        return f"one of {', '.join(map(repr, listed))}"
    return " or ".join(types_of(schema, root)) or "something else"


def _shown(value: Any) -> str:
    text = repr(value)
    return f"{type_of(value)} {text if len(text) <= SHOWN else text[:SHOWN] + '...'}"
