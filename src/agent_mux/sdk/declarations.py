"""Validation of the values in which an adapter describes its agent.

An adapter is written by hand, often without a type checker. A wrong container (`("qwen")` is a string, not a tuple) is
reported where it is written, with the field, the given value and the expected type, and not in the run that uses it.
"""

from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import cache
from types import UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

_MAX_SHOWN = 80  # characters of a given value in a message
_CONTAINERS: Mapping[Any, str] = {tuple: "tuple", frozenset: "frozenset"}
_NOT_IMPORTED: Mapping[str, Any] = {"AgentInstallation": Any, "SessionStore": Any}
"""Results of functions of an adapter, whose modules a run does not import."""


class Declaration:
    """Base of the frozen dataclasses of the adapter contract: checks the types of all fields when it is created."""

    __slots__ = ()

    def __post_init__(self) -> None:
        """Raise `TypeError` for the first field whose value has another type than the field."""
        kind: Any = type(self)
        for name, hint in _hints_of(kind).items():
            value = getattr(self, name)
            if not _fits(value, hint):
                raise TypeError(f"{self._label()}: {name} is {_show(value)}; expected {_expected(hint, value)}")

    def _label(self) -> str:
        """Return the class with the agent or the name that the value describes: `AgentCapabilities of 'qwen'`."""
        for key in ("agent", "name"):
            named = getattr(self, key, None)
            if isinstance(named, str):
                return f"{type(self).__name__} of {named!r}"
        return type(self).__name__


@cache
def _hints_of(kind: Any) -> dict[str, Any]:
    hints = get_type_hints(kind, localns=dict(_NOT_IMPORTED), include_extras=True)
    return {field.name: hints[field.name] for field in fields(kind)}


def _fits(value: Any, hint: Any) -> bool:  # noqa: PLR0911  # one return per kind of type
    """Return whether the value has the type. Parts of a type that are unknown here, such as type variables, fit."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _fits(value, arguments[0])
    if origin in (Union, UnionType):
        return any(_fits(value, choice) for choice in arguments)
    if origin is Literal:
        return any(value == choice and type(value) is type(choice) for choice in arguments)
    if origin is Callable or getattr(origin, "__name__", "") == "Callable":
        return callable(value)
    if origin is tuple:
        items = arguments[:1] * len(value) if arguments[1:] == (...,) and isinstance(value, tuple) else arguments
        return isinstance(value, tuple) and len(value) == len(items) and all(map(_fits, value, items))
    if origin is frozenset:
        return isinstance(value, frozenset) and all(_fits(item, arguments[0]) for item in value)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        key, item = arguments
        return isinstance(value, origin) and all(_fits(k, key) and _fits(v, item) for k, v in value.items())
    return _is_instance(value, origin or hint)


def _is_instance(value: Any, kind: Any) -> bool:
    if kind is Any or isinstance(kind, TypeVar) or not isinstance(kind, type):
        return True
    if isinstance(value, bool) and kind in (int, float):
        return False
    return isinstance(value, int | float if kind is float else kind)


def _show(value: Any) -> str:
    return "None" if value is None else f"{_describe(type(value))}, {_shorten(repr(value))}"


def _expected(hint: Any, value: Any) -> str:
    """Return the expected type; where only the container is wrong, also the value in the expected container."""
    described = _describe(hint)
    plain = get_args(hint)[0] if get_origin(hint) is Annotated else hint
    container = get_origin(plain)
    items = (value,) if isinstance(value, str) else value
    if container not in _CONTAINERS or not isinstance(items, list | tuple | set | frozenset):
        return described
    if not _fits(container(items), plain):
        return described
    return f"{described}: {_shorten(_spell(container, items))}"


def _spell(container: type, items: Any) -> str:
    if container is frozenset:
        return f"frozenset({{{', '.join(sorted(map(repr, items)))}}})" if items else "frozenset()"
    return repr(container(items))


def _shorten(text: str) -> str:
    return text if len(text) <= _MAX_SHOWN else text[: _MAX_SHOWN - 3] + "..."


def _describe(hint: Any) -> str:
    """Return a phrase for the type: `a tuple of str`, `an int or None`, `one of 'a', 'b'`."""
    if get_origin(hint) in (Union, UnionType):
        return " or ".join(map(_describe, get_args(hint)))
    name = _name(hint)
    if name == "None" or name.startswith("one of "):
        return name
    return f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"


def _name(hint: Any) -> str:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _name(arguments[0])
    if origin is Literal:
        return "one of " + ", ".join(map(repr, arguments))
    if origin in _CONTAINERS:
        return f"{_CONTAINERS[origin]} of {_name(arguments[0])}"
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return f"dict of {' to '.join(map(_name, arguments))}"
    name = str(getattr(origin or hint, "__name__", hint))
    return {"NoneType": "None", "Callable": "function"}.get(name, name)
