"""Taking in one event in any of its forms, and whether its fields are what the spec says. Sections 2 to 22."""

import math
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import msgspec
from msgspec import inspect

from agent_mux.events.base import BaseEvent
from agent_mux.events.wire import GROWING, UnknownEvent, event_from_dict

Check = Callable[[Any], bool]
SHOWN = 80  # characters of a bad value that a message quotes


class Reading(msgspec.Struct, frozen=True):
    """An event, or why it is none."""

    type: str
    event: BaseEvent | None
    """None when its fields are wrong, or its type is not known: then it counts as if it were not there."""
    compact: bool = False
    """The text so far was left off the wire."""
    problems: tuple[str, ...] = ()


def read(event: BaseEvent | Mapping[str, Any]) -> Reading:
    """Take an event object or an object in wire form."""
    if isinstance(event, UnknownEvent):
        return Reading(event.native_type, None)
    if isinstance(event, BaseEvent):
        problems = _problems(event)
        return Reading(event.type, None if problems else event, problems=problems)
    return _read_wire(dict(event))


def _read_wire(plain: dict[str, Any]) -> Reading:
    kind = plain.get("type")
    name = kind if isinstance(kind, str) else ""
    try:
        event = event_from_dict(plain)
    except msgspec.ValidationError as problem:
        return Reading(name, None, problems=(str(problem),))
    if isinstance(event, UnknownEvent):
        return Reading(name, None)
    return Reading(name, event, compact=name in GROWING and GROWING[name] not in plain)


def _problems(event: BaseEvent) -> tuple[str, ...]:
    # Constructing an event checks nothing; reading one from the wire does.
    checks = _checks_of(type(event))
    return tuple(_problem(event, field) for field, fits in checks if not fits(getattr(event, field.name)))


def _problem(event: BaseEvent, field: inspect.Field) -> str:
    value = repr(getattr(event, field.name))
    return f"{field.encode_name} is {value if len(value) <= SHOWN else value[:SHOWN] + '...'}"


@cache
def _checks_of(kind: type[BaseEvent]) -> tuple[tuple[inspect.Field, Check], ...]:
    shape = inspect.type_info(kind)
    fields = shape.fields if isinstance(shape, inspect.StructType) else ()
    return tuple((field, _check_of(field.type)) for field in fields)


def _check_of(shape: inspect.Type) -> Check:
    make = _MAKERS.get(type(shape))
    return make(shape) if make is not None else lambda _: True


def _number(shape: inspect.IntType | inspect.FloatType) -> Check:
    kinds = (int,) if isinstance(shape, inspect.IntType) else (int, float)
    low = shape.ge if shape.ge is not None else -math.inf
    above = shape.gt if shape.gt is not None else -math.inf
    return lambda value: (
        isinstance(value, kinds) and not isinstance(value, bool) and low <= value < math.inf and value > above
    )


def _union(shape: inspect.UnionType) -> Check:
    choices = [_check_of(choice) for choice in shape.types if not isinstance(choice, inspect.NoneType)]
    nullable = shape.includes_none
    return lambda value: nullable if value is None else any(fits(value) for fits in choices)


def _struct(shape: inspect.StructType) -> Check:
    parts = [(field.name, _check_of(field.type)) for field in shape.fields]
    return lambda value: isinstance(value, shape.cls) and all(fits(getattr(value, name)) for name, fits in parts)


_MAKERS: dict[type[inspect.Type], Callable[[Any], Check]] = {
    inspect.Metadata: lambda shape: _check_of(shape.type),
    inspect.NoneType: lambda _: lambda value: value is None,
    inspect.StrType: lambda _: lambda value: isinstance(value, str),
    inspect.BoolType: lambda _: lambda value: isinstance(value, bool),
    inspect.IntType: _number,
    inspect.FloatType: _number,
    inspect.LiteralType: lambda shape: lambda value: value in shape.values,
    inspect.UnionType: _union,
    inspect.CustomType: lambda shape: lambda value: isinstance(value, shape.cls),
    inspect.StructType: _struct,
}
