"""Values that are checked when they are made: a field of another type raises `ConfigurationError`, which names it.

A field that has its default is not checked.
"""

import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import MISSING
from difflib import get_close_matches
from functools import cache
from inspect import get_annotations
from os import PathLike
from types import NoneType, UnionType
from typing import Any, Literal, Protocol, TypeVar, Union, get_args, get_origin

from agent_loop.errors import ConfigurationError

_NAMES: Mapping[Any, str] = {
    str: "a text", bool: "a bool", int: "a whole number", float: "a number", NoneType: "None", PathLike: "a path",
}  # fmt: skip

_UNIONS = (UnionType, Union)
_TEXTS = (str, bytes, bytearray)
_LISTS = (Sequence, tuple, list)
_COLLECTIONS = (Collection, AbstractSet, frozenset, set)


class Checked:
    """Mixin of dataclasses and structs that callers make."""

    __slots__ = ()

    def __post_init__(self) -> None:
        check_fields(self)


def check_fields(value: Any) -> None:
    """Raise `ConfigurationError` for the first field of a dataclass or struct whose value has another type."""
    kind: Any = type(value)
    for name, default in _defaults(kind).items():
        given = getattr(value, name)
        if given is default or not (problem := _problem(given, _hint_of(kind, name), name)):
            continue
        if name in _hidden(kind):  # it may contain secrets
            problem = problem.partition(", not ")[0]
        raise ConfigurationError(f"{kind.__name__}: {problem}")


@cache
def _defaults(kind: Any) -> Mapping[str, Any]:
    names = getattr(kind, "__struct_fields__", None)
    if names is None:
        return {field.name: field.default for field in kind.__dataclass_fields__.values()}
    defaults = kind.__struct_defaults__
    return dict(zip(names, (*[MISSING] * (len(names) - len(defaults)), *defaults), strict=True))


@cache
def _hidden(kind: Any) -> frozenset[str]:
    fields = getattr(kind, "__dataclass_fields__", {})
    return frozenset(name for name, field in fields.items() if not field.repr)


@cache
def _hint_of(kind: Any, name: str) -> Any:
    owner = next(base for base in kind.__mro__ if name in get_annotations(base))
    return _resolved(get_annotations(owner)[name], vars(sys.modules[owner.__module__]))


def _resolved(hint: Any, names: dict[str, Any]) -> Any:
    """Return the type behind a string; any type if only type checkers import it."""
    if not isinstance(hint, str):
        return hint
    try:
        return eval(hint, dict(names))  # noqa: S307  # an annotation
    except NameError:
        return Any


def _problem(value: Any, hint: Any, path: str) -> str | None:
    """Return what is wrong with a value, None if nothing is."""
    members = get_args(hint) if get_origin(hint) in _UNIONS else (hint,)
    fitting = [member for member in members if _fits(value, member)]
    if not fitting:
        return f"{path} must be {_allowed(members)}, not {_shown(value)}{_hint_for(value, members)}"
    found = [_problem_inside(value, member, path) for member in fitting]
    return None if None in found else found[0]


def _problem_inside(value: Any, hint: Any, path: str) -> str | None:
    """Return what is wrong with the items of a collection."""
    kind, arguments = get_origin(hint) or hint, get_args(hint)
    if kind is Mapping and arguments:
        for key, item in value.items():
            if problem := _problem(key, arguments[0], f"a key of {path}") or _problem(
                item, arguments[1], f"{path}[{key!r}]"
            ):
                return problem
    elif kind in (*_LISTS, *_COLLECTIONS) and arguments and not (kind is tuple and arguments[1:] != (...,)):
        for number, item in enumerate(value):
            if problem := _problem(item, arguments[0], f"{path}[{number}]"):
                return problem
    return None


def _fits(value: Any, hint: Any) -> bool:  # noqa: PLR0911  # one return for each kind of type
    """Return whether a value has the outer type of a hint; the items of collections are not considered."""
    kind = get_origin(hint) or hint
    if kind is Any or isinstance(kind, TypeVar):
        return True
    if kind is Literal:
        return any(type(value) is type(choice) and value == choice for choice in get_args(hint))
    if kind in _UNIONS:
        return any(_fits(value, member) for member in get_args(hint))
    if kind in _LISTS or kind in _COLLECTIONS:
        outer = {tuple: Sequence, list: Sequence, frozenset: AbstractSet, set: AbstractSet}.get(kind, kind)
        return isinstance(value, outer) and not isinstance(value, (*_TEXTS, Mapping))
    if kind is Callable:
        return callable(value)
    if kind in (int, float):
        return isinstance(value, int | kind) and not isinstance(value, bool)
    if not isinstance(kind, type):
        return True
    if getattr(kind, "_is_protocol", False) and not getattr(kind, "_is_runtime_protocol", False):
        return all(hasattr(value, name) for name in _members_of(kind))
    return isinstance(value, kind)


@cache
def _members_of(protocol: Any) -> frozenset[str]:
    bases = [base for base in protocol.__mro__ if getattr(base, "_is_protocol", False) and base is not Protocol]
    names = {name for base in bases for name in (*base.__dict__, *get_annotations(base))}
    return frozenset(name for name in names if not name.startswith("_") or name == "__call__")


def _allowed(members: Sequence[Any]) -> str:
    return " or ".join(map(_name, members))


def _name(hint: Any) -> str:
    kind, arguments = get_origin(hint) or hint, get_args(hint)
    if kind is Literal:
        return " or ".join(map(repr, arguments))
    if kind in (*_LISTS, *_COLLECTIONS):
        outer = "set" if kind in (AbstractSet, frozenset, set) else "list"
        return f"a {outer} of {_name(arguments[0])}" if arguments else f"a {outer}"
    if kind is Mapping:
        return "a mapping"
    return "a function" if kind is Callable else _NAMES.get(kind, f"{getattr(kind, '__name__', kind)}(...)")


def _hint_for(value: Any, members: Sequence[Any]) -> str:
    words = [word for one in members if get_origin(one) is Literal for word in get_args(one) if isinstance(word, str)]
    close = get_close_matches(value.lower(), words, n=1) if isinstance(value, str) else []
    return f"; did you mean {close[0]!r}?" if close else ""


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:80] + "..."  # characters in a message
