"""Validation of JSON Schemas, and of values against a schema, with the library `jsonschema`.

The draft is the one that `$schema` names, 2020-12 by default. References are resolved inside the schema only; nothing
is fetched.
"""

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from agent_loop.errors import ConfigurationError

if TYPE_CHECKING:
    from jsonschema.exceptions import SchemaError, ValidationError
    from jsonschema.protocols import Validator

MAX_MESSAGE = 200
"""The longest error message in characters; messages of the library repeat the value."""
MAX_KNOWN = 64
"""How many valid schemas are kept, so that each run with the same one does not check it again (9 ms for 20 fields)."""


def check_schema(schema: Mapping[str, Any]) -> None:
    """Raise `ConfigurationError` if the value is not a valid JSON Schema. Valid ones are checked once."""
    try:
        text = json.dumps(schema)
    except (TypeError, ValueError, RecursionError):  # not JSON: the check has the reason
        _check(schema)
    else:
        _check_text(text)


@lru_cache(maxsize=MAX_KNOWN)  # what raises is not kept
def _check_text(schema: str) -> None:
    _check(json.loads(schema))


def _check(schema: Mapping[str, Any]) -> None:
    # Imported here, because the library takes long to import and is rarely needed.
    from jsonschema.exceptions import SchemaError  # noqa: PLC0415

    try:
        _draft(schema).check_schema(dict(schema))
    except SchemaError as error:
        raise ConfigurationError(f"the output schema is not a valid JSON Schema: {_format_error(error)}") from None
    except RecursionError:
        raise ConfigurationError("the output schema is nested too deeply") from None


def misfit(schema: Mapping[str, Any], value: Any) -> str | None:
    """Return the most relevant error of a value with its place, None if the value matches the schema.

    Raises `ConfigurationError` if a reference of the schema leads out of it.
    """
    from jsonschema.exceptions import best_match  # noqa: PLC0415
    from referencing import Registry  # noqa: PLC0415
    from referencing.exceptions import Unresolvable  # noqa: PLC0415

    try:
        worst = best_match(_draft(schema)(schema, registry=Registry()).iter_errors(value))
    except Unresolvable as error:
        raise ConfigurationError(f"the output schema refers to {error.ref!r}, which is not in it") from None
    except RecursionError:
        return "the value is nested too deeply"
    return None if worst is None else _format_error(worst)


def _draft(schema: Mapping[str, Any]) -> "type[Validator]":
    from jsonschema import Draft202012Validator  # noqa: PLC0415
    from jsonschema.validators import validator_for  # noqa: PLC0415

    return validator_for(schema, default=Draft202012Validator)


def _format_error(error: "ValidationError | SchemaError") -> str:
    text = f"at {error.json_path}: {error.message}"
    return text if len(text) <= MAX_MESSAGE else text[:MAX_MESSAGE] + "..."
