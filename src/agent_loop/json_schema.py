"""JSON Schema, as the library `jsonschema` has it: what a schema may be, and whether a value fits it.

References lead nowhere but into the schema itself: nothing is ever fetched. Source: JSON Schema, draft 2020-12, or the
one that `$schema` names.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from agent_loop.errors import ConfigurationError

if TYPE_CHECKING:
    from jsonschema.exceptions import SchemaError, ValidationError
    from jsonschema.protocols import Validator

SHOWN = 200
"""Characters that are told of what is wrong: it repeats the value."""


def check_schema(schema: Mapping[str, Any]) -> None:
    """Raises `ConfigurationError` for what is no JSON Schema."""
    # The library takes longer to load than most of an agent, and is hardly ever needed.
    from jsonschema.exceptions import SchemaError  # noqa: PLC0415

    try:
        _draft(schema).check_schema(dict(schema))
    except SchemaError as error:
        raise ConfigurationError(f"the output schema is no JSON Schema: {_told(error)}") from None
    except RecursionError:
        raise ConfigurationError("the output schema is nested too deeply") from None


def misfit(schema: Mapping[str, Any], value: Any) -> str | None:
    """What is wrong with the value, and where; None: nothing.

    Raises `ConfigurationError` where the schema refers to what is not in it.
    """
    from jsonschema.exceptions import best_match  # noqa: PLC0415
    from referencing import Registry  # noqa: PLC0415
    from referencing.exceptions import Unresolvable  # noqa: PLC0415

    try:
        worst = best_match(_draft(schema)(schema, registry=Registry()).iter_errors(value))
    except Unresolvable as error:
        raise ConfigurationError(f"the output schema refers to {error.ref!r}, which is not in it") from None
    except RecursionError:
        return "it is nested too deeply"
    return None if worst is None else _told(worst)


def _draft(schema: Mapping[str, Any]) -> "type[Validator]":
    from jsonschema import Draft202012Validator  # noqa: PLC0415
    from jsonschema.validators import validator_for  # noqa: PLC0415

    return validator_for(schema, default=Draft202012Validator)


def _told(error: "ValidationError | SchemaError") -> str:
    text = f"at {error.json_path}: {error.message}"
    return text if len(text) <= SHOWN else text[:SHOWN] + "..."
