"""Checking option values by type, and building structured ones from plain data.

`mcp_servers=[{"name": "docs", "command": "docs-server"}]` becomes `McpServer` objects. A value of another type is
reported with its path (`mcp_servers[0].args[1]`). The types are the annotations of `RunOptions` and of the classes that
it names. Ranges, and options that are a number or one of some words, are left to `validate_options`.
"""

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec

from agent_mux._util.durations import as_seconds
from agent_mux._util.suggestions import did_you_mean
from agent_mux.errors import FieldError, ValidationError
from agent_mux.redaction import HIDDEN
from agent_mux.sdk.options import DURATIONS, RunOptions

_UNIONS = (UnionType, Union)
_SCALARS: Mapping[Any, str] = {
    str: "a string",
    bool: "True or False",
    int: "a whole number",
    float: "a number",
    os.PathLike: "a path",
    NoneType: "None",
}


class _Policy:
    """Stands for `Policy` in annotations: importing that class takes time, and few runs have a policy."""


_NAMES = {"Policy": _Policy, "Responder": Callable, "Tool": Any, "HookType": str, "HookFunction": Any}
"""The names that `options.py` imports for type checkers only."""
_FUNCTIONS = frozenset({"tools", "hooks"})
"""Options of functions, which `validate_options` checks."""
_ALSO_PATH = frozenset({"policy"})
"""Options that a settings file may set to the path of a file."""


def typed_options(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return option values with structured ones built from plain data. None stays None.

    Raises:
        ValidationError: Values have a wrong type; the error names every such value by its path.
    """
    hints = _option_types()
    problems: list[FieldError] = []
    converted = {name: _convert_option(name, value, hints, problems) for name, value in values.items()}
    if problems:
        raise ValidationError(problems)
    return converted


def _convert_option(name: str, value: Any, hints: Mapping[str, Any], problems: list[FieldError]) -> Any:
    hint = hints[name]
    is_file = name in _ALSO_PATH and isinstance(value, os.PathLike)
    if value is None or name in _FUNCTIONS or is_file or _is_left_to_validation(hint):
        return value
    return _Converter(problems, hide=not RunOptions.__dataclass_fields__[name].repr).convert(value, hint, name)


@cache
def _option_types() -> Mapping[str, Any]:
    return get_type_hints(RunOptions, localns=_NAMES)


def _is_left_to_validation(hint: Any) -> bool:
    return all(one in (int, float, NoneType) or get_origin(one) is Literal for one in _members(hint))


def _members(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) if get_origin(hint) in _UNIONS else (hint,)


class _Converter(msgspec.Struct, frozen=True):
    """Converts one option value and adds what is wrong with it to `problems`."""

    problems: list[FieldError]
    hide: bool = False
    """Whether errors must not contain the value, because it may be a secret."""

    def convert(self, value: Any, hint: Any, path: str) -> Any:
        """Return the value as the type of the hint, or as it is after adding a problem."""
        if get_origin(hint) in _UNIONS:
            return self._convert_member(value, hint, path)
        kind = _class_of(hint)
        if _is_structured(kind):
            return self._convert_object(value, kind, path)
        origin = get_origin(hint)
        if origin in (Sequence, tuple, frozenset, Collection) and _accepts(value, hint):
            return self._convert_items(value, get_args(hint)[0], origin, path)
        if origin is Mapping and isinstance(value, Mapping):
            return self._convert_mapping(value, hint, path)
        if not _accepts(value, hint):
            self._report(path, value, describe(hint))
        return value

    def _convert_member(self, value: Any, hint: Any, path: str) -> Any:
        for member in _members(hint):
            if _accepts(value, member):
                return self.convert(value, member, path)
        self._report(path, value, describe(hint))
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
            return value
        if not isinstance(value, Mapping):
            self._report(path, value, describe(kind))
            return value
        types, count = _field_types(kind), len(self.problems)
        for key in value:
            if key not in types:
                hint = did_you_mean(str(key), types, f"its fields are {', '.join(types)}")
                self._report(f"{path}.{key}", value[key], f"a field of {kind.__name__}; {hint}")
        for name in _required_fields(kind):
            if name not in value:
                self.problems.append(FieldError(f"{path}.{name}", None, f"{describe(types[name])}; it is required"))
        built = {key: self._convert_field(kind, key, item, path) for key, item in value.items() if key in types}
        return value if len(self.problems) > count else kind(**built)

    def _convert_field(self, kind: type, name: str, value: Any, path: str) -> Any:
        hidden = is_dataclass(kind) and not kind.__dataclass_fields__[name].repr
        if name in DURATIONS and _field_types(kind)[name] is float:
            value = as_seconds(value)
        return _Converter(self.problems, hide=self.hide or hidden).convert(
            value, _field_types(kind)[name], f"{path}.{name}"
        )

    def _report(self, path: str, value: Any, allowed: str) -> None:
        self.problems.append(FieldError(path, HIDDEN if self.hide else value, allowed))


def _class_of(hint: Any) -> Any:
    if hint is not _Policy:
        return hint
    from agent_mux.sdk.policy import Policy  # noqa: PLC0415  # needed for few runs

    return Policy


def _is_structured(kind: Any) -> bool:
    return isinstance(kind, type) and (is_dataclass(kind) or issubclass(kind, msgspec.Struct))


@cache
def _field_types(kind: type) -> Mapping[str, Any]:
    known = {spec.name for spec in (fields(kind) if is_dataclass(kind) else msgspec.structs.fields(kind))}
    return {name: hint for name, hint in get_type_hints(kind, localns=_NAMES).items() if name in known}


def _required_fields(kind: type) -> list[str]:
    if is_dataclass(kind):
        return [spec.name for spec in fields(kind) if spec.default is MISSING and spec.default_factory is MISSING]
    return [spec.name for spec in msgspec.structs.fields(kind) if spec.required]


def _accepts(value: Any, hint: Any) -> bool:  # noqa: PLR0911  # one return for each kind of type
    """Return whether a value has the outer type of a hint; the items of collections are not considered."""
    origin = get_origin(hint)
    if origin is Literal:
        return any(value is choice or (value == choice and type(value) is type(choice)) for choice in get_args(hint))
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
        return " or ".join(describe(member) for member in _members(hint) if member is not NoneType)
    if origin is Literal:
        return ", ".join(map(str, get_args(hint)))
    if origin in (Sequence, tuple, frozenset, Collection):
        return f"a list of {_plural(get_args(hint)[0])}"
    if origin is Mapping:
        return f"a mapping of names to {_plural(get_args(hint)[1])}"
    kind = _class_of(origin or hint)
    if _is_structured(kind):
        return f"{_article(kind.__name__)} {kind.__name__}, or a mapping with some of {', '.join(_field_types(kind))}"
    return "a function" if kind is Callable else _SCALARS.get(kind, kind.__name__)


def _plural(hint: Any) -> str:
    if hint is Any:
        return "values"
    if get_origin(hint) in _UNIONS:
        return " or ".join(_plural(member) for member in _members(hint))
    if get_origin(hint) is Literal:
        return f"some of {describe(hint)}"
    if _is_structured(hint):
        return f"{hint.__name__} objects, or of mappings with some of {', '.join(_field_types(hint))}"
    return f"{describe(hint).removeprefix('a ')}s"


def _article(noun: str) -> str:
    return "an" if noun[0] in "AEIOU" else "a"
