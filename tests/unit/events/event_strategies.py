"""Any event there can be, made from what the models say about their fields."""

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
    """Values of a field."""
    match shape:
        case inspect.Metadata():
            return values(shape.type)
        case inspect.StrType():
            return st.text(max_size=30)
        case inspect.BoolType():
            return st.booleans()
        case inspect.IntType():
            low = shape.ge if shape.ge is not None else shape.gt + 1 if shape.gt is not None else -(2**31)
            return st.integers(low, 2**53)
        case inspect.FloatType():
            return st.floats(shape.ge, 1e12)
        case inspect.LiteralType():
            return st.sampled_from(shape.values)
        case inspect.NoneType():
            return st.none()
        case inspect.UnionType():
            return st.one_of([values(choice) for choice in shape.types])
        case inspect.StructType():
            return st.builds(shape.cls, **{field.name: values(field.type) for field in shape.fields})
        case inspect.CustomType(cls) if cls is Accumulated:
            return st.text(max_size=30).map(Accumulated.of)
        case inspect.AnyType():
            return JSON
    raise NotImplementedError(shape)


def events_of(kind: type[BaseEvent]) -> st.SearchStrategy[Any]:
    """Events of one class."""
    return values(inspect.type_info(kind))


EVENTS: st.SearchStrategy[Any] = st.sampled_from(ALL_EVENTS).flatmap(events_of)
