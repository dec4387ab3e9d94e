"""Query parameters and headers as structs: the same types validate requests and describe the API.

    class PageQuery(QueryParameters):
        limit: Annotated[int, Meta(ge=1, le=200, description="Page size.")] = 50
        cursor: Annotated[str, Meta(description="The `next` of the previous page.")] | None = None

A parameter with the default None may be absent; one without a default is required; a list may occur several times.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from types import NoneType
from typing import Any, Literal, Protocol, TypeVar, get_args, get_origin

import msgspec

from agent_mux._util.json_schemas import json_schema
from agent_mux.errors import FieldError, ValidationError


class QueryParameters(msgspec.Struct, rename="camel"):
    """Base class of the query parameters of an operation."""


class HeaderParameters(msgspec.Struct, rename="kebab"):
    """Base class of the headers that an operation reads."""


_Kind = TypeVar("_Kind", bound=QueryParameters | HeaderParameters)


class MultiValues(Protocol):
    """What Starlette's query parameters and headers have in common."""

    def getlist(self, key: str) -> Sequence[str]:
        """Return all values of a name."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a struct."""

    field: str
    name: str
    """Name in requests."""
    type: Any
    """Its type without None."""
    schema: dict[str, Any]
    """JSON Schema of the type, without a description."""
    description: str
    is_required: bool

    @property
    def is_list(self) -> bool:
        """Whether it may occur several times."""
        return bool(self.schema["type"] == "array")


@cache
def parameters_of(kind: type[QueryParameters] | type[HeaderParameters]) -> tuple[Parameter, ...]:
    """Return the parameters of a struct in the order of its fields."""
    return tuple(_parameter(field) for field in msgspec.structs.fields(kind))


def _parameter(field: msgspec.structs.FieldInfo) -> Parameter:
    type_ = next((part for part in get_args(field.type) if part is not NoneType), None)
    type_ = type_ if NoneType in get_args(field.type) else field.type
    schema = json_schema(type_)
    description = schema.pop("description", "")
    value_type = get_args(type_)[0] if hasattr(type_, "__metadata__") else type_
    if get_origin(value_type) is Literal:  # msgspec sorts the values and omits their type
        schema |= {"type": "string", "enum": list(get_args(value_type))}
    if field.default not in {None, msgspec.NODEFAULT}:
        schema["default"] = field.default
    return Parameter(field.name, field.encode_name, type_, schema, description, field.required)


def parse_parameters(kind: type[_Kind], values: MultiValues) -> _Kind:
    """Parse the parameters of a request. Raises `ValidationError` with every invalid one."""
    parsed: dict[str, Any] = {}
    problems: list[FieldError] = []
    for parameter in parameters_of(kind):  # type: ignore[arg-type]  # classes are hashable
        given = values.getlist(parameter.name)
        if len(given) > 1 and not parameter.is_list:
            problems.append(FieldError(parameter.name, f"{len(given)} times", "once"))
        elif given:
            try:
                received = list(given) if parameter.is_list else given[0]
                parsed[parameter.field] = msgspec.convert(received, parameter.type, strict=False)
            except msgspec.ValidationError:
                problems.append(FieldError(parameter.name, received, allowed_values(parameter.schema)))
        elif parameter.is_required:
            problems.append(FieldError(parameter.name, None, allowed_values(parameter.schema)))
    if problems:
        raise ValidationError(problems)
    return kind(**parsed)


def allowed_values(schema: dict[str, Any]) -> str:
    """Describe in a few words which values the schema of a parameter allows."""
    match schema:
        case {"enum": values}:
            text = ", ".join(f"`{value}`" for value in values)
        case {"type": "array", "items": items}:
            text = f"several: {allowed_values(items)}"
        case {"type": kind}:
            text = str(kind)
    low = schema.get("minimum", schema.get("minLength"))
    high = schema.get("maximum", schema.get("maxLength", schema.get("maxItems")))
    text += f", from {low}" if low is not None else ""
    text += f", up to {high}{' characters' if 'maxLength' in schema else ''}" if high is not None else ""
    return text + (f", matching `{schema['pattern']}`" if "pattern" in schema else "")
