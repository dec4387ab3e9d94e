"""Reading one event, as an object or in JSON form, and checking its fields. See docs/spec/events.md, section 2.1."""

import math
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import msgspec
from msgspec import inspect

from agent_mux.events.base import BaseEvent
from agent_mux.events.wire import ACCUMULATED_FIELDS, UnknownEvent, event_from_dict

Check = Callable[[Any], bool]
MAX_SHOWN = 80  # characters of an invalid value that a message quotes


class EventReading(msgspec.Struct, frozen=True):
    """An event, or the reasons why the input is none."""

    type: str
    event: BaseEvent | None
    """The event; None when its fields are invalid or its type is unknown. No further rule then applies to it."""
    compact: bool = False
    """Whether the input omits the accumulated text."""
    problems: tuple[str, ...] = ()


def read(event: BaseEvent | Mapping[str, Any]) -> EventReading:
    """Read an event object, or an object in JSON form."""
    if isinstance(event, UnknownEvent):
        return EventReading(event.native_type, None)
    if isinstance(event, BaseEvent):
        problems = _find_problems(event)
        return EventReading(event.type, None if problems else event, problems=problems)
    return _read_json_form(dict(event))


def _read_json_form(plain: dict[str, Any]) -> EventReading:
    value = plain.get("type")
    event_type = value if isinstance(value, str) else ""
    try:
        event = event_from_dict(plain)
    except msgspec.ValidationError as error:
        return EventReading(event_type, None, problems=(str(error),))
    if isinstance(event, UnknownEvent):
        return EventReading(event_type, None)
    return EventReading(
        event_type, event, compact=event_type in ACCUMULATED_FIELDS and ACCUMULATED_FIELDS[event_type] not in plain
    )


# -- fields of event objects, which msgspec does not check when an object is constructed


def _find_problems(event: BaseEvent) -> tuple[str, ...]:
    checks = _checks_of(type(event))
    return tuple(_describe(event, field) for field, is_valid in checks if not is_valid(getattr(event, field.name)))


def _describe(event: BaseEvent, field: inspect.Field) -> str:
    value = repr(getattr(event, field.name))
    return f"{field.encode_name} is {value if len(value) <= MAX_SHOWN else value[:MAX_SHOWN] + '...'}"


@cache
def _checks_of(kind: type[BaseEvent]) -> tuple[tuple[inspect.Field, Check], ...]:
    shape = inspect.type_info(kind)
    fields = shape.fields if isinstance(shape, inspect.StructType) else ()
    return tuple((field, _check_of(field.type)) for field in fields)


def _check_of(shape: inspect.Type) -> Check:
    make = _MAKERS.get(type(shape))
    return make(shape) if make is not None else lambda _: True


def _check_of_number(shape: inspect.IntType | inspect.FloatType) -> Check:
    kinds = (int,) if isinstance(shape, inspect.IntType) else (int, float)
    low = shape.ge if shape.ge is not None else -math.inf
    high = shape.le if shape.le is not None else math.inf
    above = shape.gt if shape.gt is not None else -math.inf
    return lambda value: (
        isinstance(value, kinds) and not isinstance(value, bool) and low <= value <= high and above < value < math.inf
    )


def _check_of_union(shape: inspect.UnionType) -> Check:
    choices = [_check_of(choice) for choice in shape.types if not isinstance(choice, inspect.NoneType)]
    nullable = shape.includes_none
    return lambda value: nullable if value is None else any(is_valid(value) for is_valid in choices)


def _check_of_struct(shape: inspect.StructType) -> Check:
    fields = [(field.name, _check_of(field.type)) for field in shape.fields]
    return lambda value: (
        isinstance(value, shape.cls) and all(is_valid(getattr(value, name)) for name, is_valid in fields)
    )


def _check_of_items(shape: inspect.VarTupleType) -> Check:
    is_valid = _check_of(shape.item_type)
    return lambda value: isinstance(value, tuple) and all(map(is_valid, value))


_MAKERS: dict[type[inspect.Type], Callable[[Any], Check]] = {
    inspect.Metadata: lambda shape: _check_of(shape.type),
    inspect.NoneType: lambda _: lambda value: value is None,
    inspect.StrType: lambda _: lambda value: isinstance(value, str),
    inspect.BoolType: lambda _: lambda value: isinstance(value, bool),
    inspect.IntType: _check_of_number,
    inspect.FloatType: _check_of_number,
    inspect.LiteralType: lambda shape: lambda value: value in shape.values,
    inspect.UnionType: _check_of_union,
    inspect.CustomType: lambda shape: lambda value: isinstance(value, shape.cls),
    inspect.StructType: _check_of_struct,
    inspect.VarTupleType: _check_of_items,
}
