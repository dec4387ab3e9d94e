"""Validation of JSON Schemas and of values. References are resolved inside the schema only; nothing is fetched.

The draft is the one that `$schema` names, 2020-12 by default.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jsonschema.exceptions import SchemaError, ValidationError
    from jsonschema.protocols import Validator

MAX_MESSAGE = 200  # characters: messages of the library repeat the value


def problem_of_schema(schema: Mapping[str, Any]) -> str | None:
    """Return why a value is not a JSON Schema; None if it is one."""
    from jsonschema.exceptions import SchemaError  # noqa: PLC0415  # slow, and rarely needed

    try:
        _draft(schema).check_schema(dict(schema))
    except SchemaError as error:
        return _in_words(error)
    except RecursionError:
        return "it is nested too deeply"
    return None


def problem_of_value(schema: Mapping[str, Any], value: Any) -> str | None:
    """Return the most relevant error of a value, with its place; None if the value matches the schema."""
    from jsonschema.exceptions import best_match  # noqa: PLC0415
    from referencing import Registry  # noqa: PLC0415
    from referencing.exceptions import Unresolvable  # noqa: PLC0415

    try:
        worst = best_match(_draft(schema)(schema, registry=Registry()).iter_errors(value))
    except Unresolvable as error:
        return f"the schema refers to {error.ref!r}, which is not in it"
    except RecursionError:
        return "it is nested too deeply"
    return None if worst is None else _in_words(worst)


def _draft(schema: Mapping[str, Any]) -> "type[Validator]":
    from jsonschema import Draft202012Validator  # noqa: PLC0415
    from jsonschema.validators import validator_for  # noqa: PLC0415

    return validator_for(schema, default=Draft202012Validator)


def _in_words(error: "ValidationError | SchemaError") -> str:
    text = f"at {error.json_path}: {error.message}"
    return text if len(text) <= MAX_MESSAGE else text[:MAX_MESSAGE] + "..."
