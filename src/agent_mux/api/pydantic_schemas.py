"""How pydantic validates, serializes and describes public classes: by their JSON forms.

A value is accepted as an instance or as JSON values, and is always written as JSON values, in Python mode too. JSON
Schemas refer to each other by the generator of pydantic, so that references resolve wherever it puts the definitions.
"""

from functools import cache
from typing import Any

import msgspec
from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler, TypeAdapter, ValidationError
from pydantic_core import (
    CoreSchema,
    InitErrorDetails,
    PydanticCustomError,
    PydanticSerializationUnexpectedValue,
    core_schema,
    to_jsonable_python,
)

from agent_mux._util.sanitize import to_json_bytes
from agent_mux.api.json_forms import CLASS_BY_NAME, Schema, form_of
from agent_mux.api.json_problems import InvalidDataError, Problem
from agent_mux.events import ALL_EVENTS, AgentEvent, BaseEvent, UnknownEvent

_REF_PREFIX = "#/$defs/"


def core_schema_of(kind: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
    """Return the schema that validates and serializes one class. `BaseEvent` stands for any event."""
    if kind is BaseEvent:
        return handler.generate_schema(AgentEvent | UnknownEvent)
    form = form_of(kind)

    def validate(value: Any) -> Any:
        if isinstance(value, kind):
            return value
        try:
            return form.read(value)
        except InvalidDataError as error:
            details = [_details_of(problem, value) for problem in error.problems]
            raise ValidationError.from_exception_data(kind.__name__, details) from error

    validate.__name__ = kind.__name__  # the title of errors

    def serialize(value: Any, info: core_schema.SerializationInfo) -> Any:
        if not isinstance(value, kind):
            raise PydanticSerializationUnexpectedValue(f"Expected `{kind.__name__}` but got `{type(value).__name__}`")
        written = msgspec.json.decode(to_json_bytes(form.write(value)))
        return to_jsonable_python(written, include=info.include, exclude=info.exclude)  # type: ignore[arg-type]

    ref = f"{kind.__module__}.{kind.__qualname__}:{id(kind)}"
    serialization = core_schema.plain_serializer_function_ser_schema(serialize, info_arg=True)
    if form.tag is None:
        return core_schema.no_info_plain_validator_function(validate, ref=ref, serialization=serialization)

    def wrapped(value: Any, _: Any) -> Any:
        return validate(value)

    wrapped.__name__ = kind.__name__
    # The fields are never validated. pydantic looks for the literal in them where a union has a discriminator.
    fields = {"type": core_schema.typed_dict_field(core_schema.literal_schema([form.tag]))}
    return core_schema.no_info_wrap_validator_function(
        wrapped, core_schema.typed_dict_schema(fields), ref=ref, serialization=serialization
    )


def any_event_schema(handler: GetCoreSchemaHandler) -> CoreSchema:
    """Return the schema of the union of all events, with the discriminator `type`."""
    choices = {event.type: handler.generate_schema(event) for event in ALL_EVENTS}
    union = core_schema.tagged_union_schema(choices, "type", ref="agent_mux.events.AgentEvent")

    def validate(value: Any, validate_union: core_schema.ValidatorFunctionWrapHandler) -> Any:
        return validate_union(value)

    validate.__name__ = "AgentEvent"  # the title of errors, instead of the names of 67 choices
    return core_schema.no_info_wrap_validator_function(validate, union)


def json_schema_of(kind: Any, schema: CoreSchema, handler: GetJsonSchemaHandler) -> Schema:
    """Return the JSON Schema of one class. `schema` is the result of `core_schema_of`."""
    if kind is BaseEvent:
        return handler(schema)

    def resolved(value: Any) -> Any:
        match value:
            case {"$ref": str(ref), **rest} if ref.startswith(_REF_PREFIX):
                # The handler describes the type of a schema only; an item of a list is described like any other class.
                target = handler(_schema_of_list(ref.removeprefix(_REF_PREFIX)))["items"]
                return {**target, **resolved(rest)}
            case dict():
                return {key: resolved(part) for key, part in value.items()}
            case list():
                return [resolved(part) for part in value]
        return value

    described: Schema = resolved(form_of(kind).schema())
    return described


@cache
def _schema_of_list(name: str) -> CoreSchema:
    kind: Any = AgentEvent if name == "AgentEvent" else CLASS_BY_NAME[name]
    return core_schema.list_schema(TypeAdapter(kind).core_schema)


def _details_of(problem: Problem, value: Any) -> InitErrorDetails:
    received = _value_at(problem, value) if problem.received is ... else problem.received
    kind = "missing" if problem.is_missing else "invalid_value"
    error = PydanticCustomError(kind, problem.message)
    return InitErrorDetails(type=error, loc=problem.location, input=received)


def _value_at(problem: Problem, value: Any) -> Any:
    """Return the value at the location of a problem, or the object that lacks a field."""
    for step in problem.location[:-1] if problem.is_missing else problem.location:
        try:
            value = value[step]
        except (LookupError, TypeError):
            return value
    return value
