"""Typed answers: a JSON Schema or a Python type, as the schema for the model and the conversion of its answer."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from agent_loop.errors import ConfigurationError, InvalidArgumentsError

OutputSchema = Mapping[str, Any] | type[Any] | Any
"""A JSON Schema, or a type that pydantic can validate: a model, a dataclass, a TypedDict, `list[City]`, ..."""


def schema_of_output(output: OutputSchema) -> Mapping[str, Any]:
    """Return the JSON Schema of an output. Raises `ConfigurationError` for a type that has none."""
    if isinstance(output, Mapping):
        return output
    from pydantic.errors import PydanticUserError  # noqa: PLC0415  # slow import

    adapter = _adapter(output)
    try:
        schema: dict[str, Any] = adapter.json_schema()
    except PydanticUserError as error:
        raise ConfigurationError(f"output_schema: {_name(output)} has no JSON Schema: {_first_line(error)}") from None
    return schema


def typed_output(output: OutputSchema, value: Any) -> Any:
    """Return plain data as an instance of the output's type; unchanged for a JSON Schema.

    Raises `InvalidArgumentsError` if a validator of the type rejects it.
    """
    if isinstance(output, Mapping):
        return value
    from pydantic import ValidationError  # noqa: PLC0415  # slow import

    try:
        return _adapter(output).validate_python(value)
    except ValidationError as error:
        problems = "; ".join(
            f"{'.'.join(map(str, each['loc'])) or 'answer'}: {each['msg']}" for each in error.errors()[:5]
        )
        raise InvalidArgumentsError(problems) from None


def _adapter(output: Any) -> Any:
    try:
        return _cached_adapter(output)
    except TypeError as error:  # not hashable: not a type
        raise ConfigurationError(f"output_schema must be a JSON Schema or a type, not {output!r}") from error


@lru_cache(maxsize=64)
def _cached_adapter(output: Any) -> Any:
    from pydantic import TypeAdapter  # noqa: PLC0415  # slow import
    from pydantic.errors import PydanticUserError  # noqa: PLC0415

    try:
        return TypeAdapter(output)
    except (PydanticUserError, NameError) as error:
        raise ConfigurationError(
            f"output_schema must be a JSON Schema or a type that pydantic can validate, not {_name(output)}: "
            f"{_first_line(error)}"
        ) from None


def _name(output: Any) -> str:
    return getattr(output, "__name__", repr(output))


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
