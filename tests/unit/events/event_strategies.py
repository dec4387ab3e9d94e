"""Hypothesis strategies for events, derived from the types of their fields."""

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st
from msgspec import inspect

from agent_mux.events import ALL_EVENTS, Accumulated, BaseEvent

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


def values(shape: inspect.Type) -> st.SearchStrategy[Any]:
    """Return a strategy for the values of a field."""
    return MAKERS[type(shape)](shape)


def _integers(shape: inspect.IntType) -> st.SearchStrategy[int]:
    low = shape.ge if shape.ge is not None else shape.gt + 1 if shape.gt is not None else -(2**31)
    return st.integers(low, 2**53)


MAKERS: dict[type[inspect.Type], Callable[[Any], st.SearchStrategy[Any]]] = {
    inspect.Metadata: lambda shape: values(shape.type),
    inspect.StrType: lambda _: st.text(max_size=30),
    inspect.BoolType: lambda _: st.booleans(),
    inspect.IntType: _integers,
    inspect.FloatType: lambda shape: st.floats(shape.ge, 1e12 if shape.le is None else shape.le),
    inspect.VarTupleType: lambda shape: st.lists(values(shape.item_type), max_size=3).map(tuple),
    inspect.LiteralType: lambda shape: st.sampled_from(shape.values),
    inspect.NoneType: lambda _: st.none(),
    inspect.UnionType: lambda shape: st.one_of([values(choice) for choice in shape.types]),
    inspect.StructType: lambda shape: st.builds(shape.cls, **{part.name: values(part.type) for part in shape.fields}),
    inspect.CustomType: lambda _: st.text(max_size=30).map(Accumulated.of),
    inspect.AnyType: lambda _: JSON,
    inspect.ListType: lambda shape: st.lists(values(shape.item_type), max_size=3),
}


def events_of(kind: type[BaseEvent]) -> st.SearchStrategy[Any]:
    """Return a strategy for events of one class."""
    return values(inspect.type_info(kind))


EVENTS: st.SearchStrategy[Any] = st.sampled_from(ALL_EVENTS).flatmap(events_of)
