"""Check values by the annotated types of their fields, and build structured ones from plain data.

A list becomes the tuple of a field, and a mapping the class that a field names. A value of another type is reported
with its path (`mcp_servers[0].args[1]`), the allowed values and, for a misspelled word, the nearest one.
"""

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec

from agent_mux._util.durations import as_seconds
from agent_mux._util.suggestions import closest_names, did_you_mean
from agent_mux.errors import FieldError, ValidationError
from agent_mux.redaction import HIDDEN, is_secret_name

_UNIONS = (UnionType, Union)
_SCALARS: Mapping[Any, str] = {
    str: "a string",
    bool: "True or False",
    int: "a whole number",
    float: "a number",
    os.PathLike: "a path",
    Path: "a path",
    dict: "a mapping",
    NoneType: "None",
}


class _Policy:
    """Stands for `Policy` in annotations: importing that class takes time, and few runs have a policy."""


NAMES = {
    "Policy": _Policy,
    "Responder": Callable,
    "Tool": Any,
    "HookType": str,
    "HookFunction": Any,
    "AdapterRegistry": Any,
}
"""The names that annotations of options and arguments import for type checkers only."""


def check_fields(value: Any, prefix: str, *, without: Collection[str] = ()) -> None:
    """Check the fields of a new object except `without`, and replace those that are given as plain data.

    Raises:
        ValidationError: Fields have a wrong type; the error names every such field, after the prefix.
    """
    kind: Any = type(value)
    problems: list[FieldError] = []
    defaults = _defaults(kind)
    for name, hint in field_types(kind).items():
        given = getattr(value, name)
        if name in without or given is defaults[name]:
            continue
        if name in getattr(kind, "durations", ()):
            given = as_seconds(given)
        converted = Converter(problems, hide=is_hidden(kind, name)).convert(given, hint, prefix + name)
        if converted is not getattr(value, name):
            _replace(value, name, converted)
    if problems:
        raise ValidationError(problems)


def check_arguments(values: Mapping[str, Any], arguments: Any) -> None:
    """Check the keyword arguments of a function by the `TypedDict` that declares them.

    Raises:
        ValidationError: Values have a wrong type; the error names every such argument.
    """
    problems: list[FieldError] = []
    hints = _argument_types(arguments)
    for name, value in values.items():
        Converter(problems, hide=is_secret_name(name)).convert(value, hints[name], name)
    if problems:
        raise ValidationError(problems)


def from_plain(value: Any, kind: type, path: str) -> Any:
    """Return an object of a class from a mapping. Raises `ValidationError`, which names the fields by their paths."""
    problems: list[FieldError] = []
    converted = Converter(problems).convert(value, kind, path)
    if problems:
        raise ValidationError(problems)
    return converted


def _replace(value: Any, name: str, converted: Any) -> None:
    if is_dataclass(value):
        object.__setattr__(value, name, converted)
    else:
        msgspec.structs.force_setattr(value, name, converted)


def is_hidden(kind: type, name: str) -> bool:
    """Return whether errors must not contain the value of a field: the repr of its class does not either."""
    return is_dataclass(kind) and not kind.__dataclass_fields__[name].repr


def members(hint: Any) -> tuple[Any, ...]:
    """Return the types of a union; for any other type, the type itself."""
    return get_args(hint) if get_origin(hint) in _UNIONS else (hint,)


class Converter(msgspec.Struct, frozen=True):
    """Converts one option value and adds what is wrong with it to `problems`."""

    problems: list[FieldError]
    hide: bool = False
    """Whether errors must not contain the value, because it may be a secret."""

    def convert(self, value: Any, hint: Any, path: str) -> Any:
        """Return the value as the type of the hint, or as it is after adding a problem."""
        if get_origin(hint) in _UNIONS:
            return self._convert_member(value, hint, path)
        kind = _class_of(hint)
        if kind is Path and isinstance(value, str | os.PathLike):
            return value if isinstance(value, Path) else Path(value)
        if _is_structured(kind):
            return self._convert_object(value, kind, path)
        origin = get_origin(hint)
        if origin is Literal and isinstance(value, str):
            value = next((word for word in get_args(hint) if word == value), value)  # also for members of a StrEnum
        if origin in (Sequence, tuple, frozenset, Collection) and _accepts(value, hint):
            return self._convert_items(value, get_args(hint)[0], origin, path)
        if origin in (Mapping, dict) and isinstance(value, origin):
            return self._convert_mapping(value, hint, path)
        if not _accepts(value, hint):
            self._report_type(path, value, hint)
        return value

    def _convert_member(self, value: Any, hint: Any, path: str) -> Any:
        found: list[FieldError] = []
        for member in members(hint):
            if _accepts(value, member):
                problems: list[FieldError] = []
                converted = Converter(problems, hide=self.hide).convert(value, member, path)
                if not problems:
                    return converted
                found = found or problems
        if not found:
            self._report_type(path, value, hint)
        self.problems.extend(found)
        return value

    def _convert_items(self, values: Collection[Any], hint: Any, origin: Any, path: str) -> Any:
        items = [self.convert(item, hint, f"{path}[{index}]") for index, item in enumerate(values)]
        if origin is frozenset:
            return frozenset(items) if not self.problems else values
        is_same = origin is Sequence and all(new is old for new, old in zip(items, values, strict=True))
        return values if is_same else tuple(items)

    def _convert_mapping(self, values: Mapping[Any, Any], hint: Any, path: str) -> Mapping[Any, Any]:
        key_type, value_type = get_args(hint)
        for key, value in values.items():
            if not _accepts(key, key_type):
                self._report(path, key, f"keys that are {describe(key_type).removeprefix('a ')}s")
            self.convert(value, value_type, f"{path}.{key}")
        return values

    def _convert_object(self, value: Any, kind: type, path: str) -> Any:
        if isinstance(value, kind):
            if type(value) is not kind:  # a subclass may have replaced the check
                self._call(lambda: check_fields(value, f"{type(value).__name__}."), type(value), path)
            return value
        if not isinstance(value, Mapping):
            self._report(path, value, describe(kind))
            return value
        types, count = field_types(kind), len(self.problems)
        for key in value:
            if key not in types:
                hint = did_you_mean(str(key), types, f"its fields are {', '.join(types)}")
                self._report(f"{path}.{key}", value[key], f"a field of {kind.__name__}; {hint}")
        for name in _required_fields(kind):
            if name not in value:
                self.problems.append(FieldError(f"{path}.{name}", None, f"{describe(types[name])}; it is required"))
        built = {key: self._convert_field(kind, key, item, path) for key, item in value.items() if key in types}
        return value if len(self.problems) > count else self._call(lambda: kind(**built), kind, path)

    def _call(self, make: Callable[[], Any], kind: type, path: str) -> Any:
        """Return the result; add the problems of an object of this class, with their paths in the whole value."""
        try:
            return make()
        except ValidationError as error:  # of the values together, or of their ranges
            for one in error.fields:
                name = one.path.removeprefix(kind.__name__)
                self.problems.append(FieldError(f"{path}{name}", one.received, one.allowed))
        return None

    def _convert_field(self, kind: type, name: str, value: Any, path: str) -> Any:
        if name in getattr(kind, "durations", ()):
            value = as_seconds(value)
        return Converter(self.problems, hide=self.hide or is_hidden(kind, name)).convert(
            value, field_types(kind)[name], f"{path}.{name}"
        )

    def _report(self, path: str, value: Any, allowed: str) -> None:
        self.problems.append(FieldError(path, HIDDEN if self.hide else value, allowed))

    def _report_type(self, path: str, value: Any, hint: Any) -> None:
        words = [word for one in members(hint) if get_origin(one) is Literal for word in map(str, get_args(one))]
        close = closest_names(value.lower(), words) if isinstance(value, str) else []
        self._report(path, value, describe(hint) + (f"; did you mean {close[0]!r}?" if close else ""))


def _class_of(hint: Any) -> Any:
    if hint is not _Policy:
        return hint
    # By name: that module imports this one, and few runs need it.
    return import_module("agent_mux.sdk.policy").Policy


def _is_structured(kind: Any) -> bool:
    return isinstance(kind, type) and (is_dataclass(kind) or issubclass(kind, msgspec.Struct))


@cache
def field_types(kind: type) -> Mapping[str, Any]:
    """Return the types of the fields of a dataclass or struct by name, without what annotates them."""
    known = {spec.name for spec in (fields(kind) if is_dataclass(kind) else msgspec.structs.fields(kind))}
    return {name: hint for name, hint in get_type_hints(kind, localns=NAMES).items() if name in known}


@cache
def _argument_types(arguments: Any) -> Mapping[str, Any]:
    hints: Mapping[str, Any] = get_type_hints(arguments, localns=NAMES)
    return hints


@cache
def _defaults(kind: type) -> Mapping[str, Any]:
    """Return the default of each field, or what is no value at all: most fields of most objects have it."""
    specs: Any = fields(kind) if is_dataclass(kind) else msgspec.structs.fields(kind)
    return {spec.name: spec.default for spec in specs}


def _required_fields(kind: type) -> list[str]:
    if is_dataclass(kind):
        return [spec.name for spec in fields(kind) if spec.default is MISSING and spec.default_factory is MISSING]
    return [spec.name for spec in msgspec.structs.fields(kind) if spec.required]


def _accepts(value: Any, hint: Any) -> bool:  # noqa: PLR0911  # one return for each kind of type
    """Return whether a value has the outer type of a hint; the items of collections are not considered."""
    origin = get_origin(hint)
    if origin is Literal:
        kind = str if isinstance(value, str) else type(value)
        return any(value is choice or (value == choice and kind is type(choice)) for choice in get_args(hint))
    if origin in (Sequence, tuple):
        return isinstance(value, Sequence) and not isinstance(value, str | bytes | bytearray)
    if origin in (frozenset, Collection):
        return isinstance(value, Collection) and not isinstance(value, str | bytes | bytearray | Mapping)
    if hint is Any:
        return True
    if hint in (float, int):
        return isinstance(value, int if hint is int else (int, float)) and not isinstance(value, bool)
    kind = _class_of(origin or hint)
    if _is_structured(kind):
        return isinstance(value, (kind, Mapping))
    return callable(value) if kind is Callable else isinstance(value, kind)


def describe(hint: Any) -> str:
    """Return the values that a type allows, as a phrase for errors: `a string or a list of strings`."""
    origin = get_origin(hint)
    if origin in _UNIONS:
        return " or ".join(describe(member) for member in members(hint) if member is not NoneType)
    if origin is Literal:
        return ", ".join(map(str, get_args(hint)))
    if origin in (Sequence, tuple, frozenset, Collection):
        return f"a list of {_plural(get_args(hint)[0])}"
    if origin in (Mapping, dict):
        return f"a mapping of names to {_plural(get_args(hint)[1])}"
    kind = _class_of(origin or hint)
    if _is_structured(kind):
        return f"{_article(kind.__name__)} {kind.__name__}, or a mapping with some of {', '.join(field_types(kind))}"
    return "a function" if kind is Callable else _SCALARS.get(kind, f"{_article(kind.__name__)} {kind.__name__}")


def _plural(hint: Any) -> str:
    if hint is Any:
        return "values"
    if get_origin(hint) in _UNIONS:
        return " or ".join(_plural(member) for member in members(hint))
    if get_origin(hint) is Literal:
        return f"some of {describe(hint)}"
    if _is_structured(hint):
        return f"{hint.__name__} objects, or of mappings with some of {', '.join(field_types(hint))}"
    return f"{describe(hint).removeprefix('a ')}s"


def _article(noun: str) -> str:
    return "an" if noun[0] in "AEIOU" else "a"
