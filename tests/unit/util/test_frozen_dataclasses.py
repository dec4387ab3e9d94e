"""Frozen dataclasses with shared methods behave as those that `dataclasses.dataclass` generates."""

import copy
import dataclasses
import inspect
import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError, InitVar, asdict, dataclass, field, fields, replace
from typing import Any

import msgspec
import pytest

from agent_mux._util import frozen_dataclasses


def pair(decorator: Any) -> Any:
    @decorator(frozen=True, slots=True)
    class Pair:
        """Two values."""

        left: int
        right: str = "r"
        hidden: str = field(default="h", repr=False, compare=False)
        items: dict[str, int] = field(default_factory=dict, kw_only=True, hash=False)

    return Pair


def options(decorator: Any) -> Any:
    @decorator(frozen=True, slots=True, kw_only=True)
    class Options:
        """Named values with a deprecated one."""

        name: str
        limit: int | None = None
        old_limit: InitVar[int | None] = None  # type: ignore[assignment]  # mypy: the decorator is unknown

        def __post_init__(self, old_limit: int | None) -> None:
            if old_limit is not None:
                object.__setattr__(self, "limit", old_limit)

    return Options


@frozen_dataclasses.dataclass(frozen=True, slots=True)
class Point:
    """A class that can be pickled, because a module has it."""

    x: int
    y: tuple[int, ...] = ()


MAKERS: list[Callable[[Any], Any]] = [pair, options]
CALLS: list[tuple[Callable[[Any], Any], tuple[Any, ...], dict[str, Any]]] = [
    (pair, (1,), {}),
    (pair, (1, "b", "c"), {"items": {"a": 1}}),
    (pair, (), {"right": "x", "left": 2}),
    (pair, (), {}),
    (pair, (1, "b", "c", {}), {}),
    (pair, (1,), {"left": 1}),
    (pair, (1,), {"unknown": 1}),
    (options, (), {"name": "n", "old_limit": 4}),
    (options, (), {"name": "n", "limit": 3}),
    (options, ("n",), {}),
]


def outcome(kind: Any, args: tuple[Any, ...], values: dict[str, Any]) -> Any:
    try:
        made = kind(*args, **values)
    except TypeError:
        return TypeError
    return repr(made), asdict(made), asdict(replace(made))


@pytest.mark.parametrize(("make", "args", "values"), CALLS)
def test_calls_of_the_constructor_have_the_usual_outcome(
    make: Callable[[Any], Any], args: tuple[Any, ...], values: dict[str, Any]
) -> None:
    assert outcome(make(frozen_dataclasses.dataclass), args, values) == outcome(make(dataclass), args, values)


@pytest.mark.parametrize("make", MAKERS)
def test_fields_parameters_and_slots_are_those_of_a_usual_dataclass(make: Callable[[Any], Any]) -> None:
    ours: Any = make(frozen_dataclasses.dataclass)
    usual: Any = make(dataclass)
    assert [one.name for one in fields(ours)] == [one.name for one in fields(usual)]
    assert ours.__slots__ == usual.__slots__
    assert ours.__match_args__ == usual.__match_args__
    found, expected = inspect.signature(ours).parameters, inspect.signature(usual).parameters
    assert [(one.name, one.kind, repr(one.annotation)) for one in found.values()] == [
        (one.name, one.kind, repr(one.annotation)) for one in expected.values()
    ]
    assert [one.default for one in found.values() if one.name != "items"] == [
        one.default for one in expected.values() if one.name != "items"
    ]


def test_errors_of_the_constructor_name_the_class_and_the_argument() -> None:
    kind = pair(frozen_dataclasses.dataclass)
    with pytest.raises(TypeError, match=r"^Pair\(\) is missing required arguments: 'left'$"):
        kind()
    with pytest.raises(TypeError, match=r"^Pair\(\) got an unexpected keyword argument 'lefft'$"):
        kind(1, lefft=1)
    with pytest.raises(TypeError, match=r"^Pair\(\) got multiple values for argument 'left'$"):
        kind(1, left=1)
    with pytest.raises(TypeError, match=r"^Pair\(\) takes 3 positional arguments but 4 were given$"):
        kind(1, "", "", {})


def test_equality_and_hash_use_the_fields_that_are_compared() -> None:
    kind = pair(frozen_dataclasses.dataclass)
    one, same, other = kind(1), kind(1, hidden="other"), kind(2)
    assert one == same
    assert one != other
    assert one != 1
    assert hash(one) == hash(same)
    assert {one: "found"}[same] == "found"


def test_fields_cannot_be_assigned_or_deleted() -> None:
    point: Any = Point(1)
    for name in ("x", "unknown"):
        with pytest.raises(FrozenInstanceError):
            setattr(point, name, 2)
    with pytest.raises(FrozenInstanceError):
        del point.x
    assert point == Point(1)
    assert not hasattr(point, "__dict__")


def test_instances_can_be_copied_pickled_matched_and_converted() -> None:
    point = Point(1, (2, 3))
    assert copy.copy(point) == copy.deepcopy(point) == pickle.loads(pickle.dumps(point)) == point  # noqa: S301  # our own
    match point:
        case Point(x, y):
            assert (x, y) == (1, (2, 3))
    assert msgspec.convert({"x": 1, "y": [2, 3]}, Point) == point
    assert msgspec.to_builtins(point) == {"x": 1, "y": (2, 3)}


def test_a_repr_that_contains_itself_ends() -> None:
    items: dict[str, Any] = {}
    one = pair(frozen_dataclasses.dataclass)(1, items=items)
    items["self"] = one
    assert repr(one).endswith("items={'self': ...})")


def test_dataclasses_that_inherit_must_be_frozen_too() -> None:
    base = pair(frozen_dataclasses.dataclass)
    with pytest.raises(TypeError, match="cannot inherit non-frozen dataclass from a frozen one"):

        @dataclass
        class Thawed(base):  # type: ignore[valid-type,misc]
            more: int = 0

    @dataclass(frozen=True)
    class More(base):  # type: ignore[valid-type,misc]
        more: int = 0

    assert asdict(More(1, more=2)) == {"left": 1, "right": "r", "hidden": "h", "items": {}, "more": 2}


@pytest.mark.parametrize("decorator", [{"frozen": False, "slots": True}, {"frozen": True, "slots": False}])
def test_other_dataclasses_are_refused(decorator: dict[str, bool]) -> None:
    with pytest.raises(TypeError, match="only frozen classes with slots"):
        frozen_dataclasses.dataclass(**decorator)(type("Other", (), {}))


def test_methods_are_shared_by_all_classes() -> None:
    first, second = pair(frozen_dataclasses.dataclass), options(frozen_dataclasses.dataclass)
    assert first.__init__ is second.__init__
    assert dataclasses.fields(first) != dataclasses.fields(second)
