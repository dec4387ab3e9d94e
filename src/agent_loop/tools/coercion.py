"""One value and its schema: does it fit, and what else could it have been meant to be?

Source: zidane, "Tool argument auto-coercion". Nothing here raises, whatever schema or value come.
"""

import json
import math
import re
from collections import deque
from collections.abc import Mapping
from typing import Any

import msgspec

NOTHING: Any = object()
"""No coercion makes it fit."""

DEPTH = 32
"""Of references and unions in one another. What is deeper fits: a schema that refers to itself has no end."""

_YES, _NO = frozenset({"true", "yes", "1"}), frozenset({"false", "no", "0"})
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_MOST_DIGITS = 400
"""More than any float has; Python refuses to read integers of thousands of digits."""
_KINDS: tuple[tuple[str, type | tuple[type, ...]], ...] = (
    ("null", type(None)),
    ("boolean", bool),  # before the integers: it is one of them to Python
    ("integer", int),
    ("number", float),
    ("string", str),
    ("object", Mapping),
)
_PREFERRED = ("integer", "number", "boolean", "array", "object", "string")
"""Where a union leaves a choice. "1" is a number sooner than it is true."""


def type_of(value: Any) -> str:
    """The JSON type of a value."""
    return next((name for name, kinds in _KINDS if isinstance(value, kinds)), "array")


def fits(value: Any, schema: Any, root: Mapping[str, Any]) -> bool:
    """The value is what the schema declares: type, `enum`, `const`, through unions and references into `root`."""
    return _Fitting(value, root).fits(schema)


class _Fitting:
    """One value against a schema and its parts, each looked at once: a hostile one may be all references."""

    def __init__(self, value: Any, root: Mapping[str, Any]) -> None:
        self._value = value
        self._root = root
        self._known: dict[int, bool] = {}

    def fits(self, schema: Any, depth: int = DEPTH) -> bool:
        if not isinstance(schema, Mapping) or depth == 0:
            return schema is not False
        if id(schema) not in self._known:
            self._known[id(schema)] = True  # as far as the schema refers to itself
            self._known[id(schema)] = self._looked_at(schema, depth - 1)
        return self._known[id(schema)]

    def _looked_at(self, schema: Mapping[str, Any], depth: int) -> bool:
        parts = [_referred(schema, self._root), *_list(schema, "allOf")]
        unions = [union for key in ("anyOf", "oneOf") if (union := _list(schema, key))]
        return (
            _has_type(self._value, schema)
            and _is_listed(self._value, schema)
            and all(self.fits(part, depth) for part in parts)
            and all(any(self.fits(part, depth) for part in union) for union in unions)
        )


def coerced(value: Any, schema: Any, root: Mapping[str, Any]) -> Any:
    """What fits the schema and says the same as `value`; `NOTHING` where there is no such thing."""
    wanted = set(types_of(schema, root))
    candidates = (_converted(value, kind) for kind in _PREFERRED if kind in wanted)
    return next((found for found in candidates if found is not NOTHING and fits(found, schema, root)), NOTHING)


def types_of(schema: Any, root: Mapping[str, Any]) -> list[str]:
    """All types that the schema names, nearest first."""
    types: dict[str, None] = {}
    seen: set[int] = set()
    waiting = deque([schema])
    while waiting:
        part = waiting.popleft()
        if not isinstance(part, Mapping) or id(part) in seen:
            continue
        seen.add(id(part))
        types.update(dict.fromkeys(_declared(part) + [type_of(member) for member in _members(part)]))
        waiting.append(_referred(part, root))
        waiting.extend(each for key in ("allOf", "anyOf", "oneOf") for each in _list(part, key))
    return list(types)


def _declared(schema: Mapping[str, Any]) -> list[str]:
    declared = schema.get("type")
    return (
        [declared] if isinstance(declared, str) else [each for each in _list(schema, "type") if isinstance(each, str)]
    )


def _members(schema: Mapping[str, Any]) -> list[Any]:
    return _list(schema, "enum") + ([schema["const"]] if "const" in schema else [])


def _list(schema: Mapping[str, Any], key: str) -> list[Any]:
    value = schema.get(key)
    return list(value) if isinstance(value, list | tuple) else []


def _has_type(value: Any, schema: Mapping[str, Any]) -> bool:
    declared = _declared(schema)
    kind = type_of(value)
    return not declared or kind in declared or (kind == "integer" and "number" in declared)


def _is_listed(value: Any, schema: Mapping[str, Any]) -> bool:
    members = _members(schema)
    return not members or any(_same(value, member) for member in members)


def _same(one: Any, other: Any) -> bool:
    """Equal as JSON: true is not 1."""
    return bool(one == other) and isinstance(one, bool) == isinstance(other, bool)


def _referred(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Any:
    """What `$ref` stands for; True (anything) where there is none, or where it leads nowhere."""
    reference = schema.get("$ref")
    if not isinstance(reference, str) or not reference.startswith("#"):
        return True
    found: Any = root
    for step in reference[1:].split("/")[1:]:
        key = step.replace("~1", "/").replace("~0", "~")
        if not isinstance(found, Mapping) or key not in found:
            return True
        found = found[key]
    return found


def _converted(value: Any, kind: str) -> Any:
    match kind, value:
        case "integer" | "number", str():
            return _number(value.strip(), kind)
        case "integer", float() if math.isfinite(value) and value.is_integer():
            return int(value)
        case "boolean", str():
            word = value.strip().lower()
            return word in _YES if word in _YES | _NO else NOTHING
        case "array" | "object", str():
            return _decoded(value, kind)
        case "string", bool() | int() | float():
            return _written(value)
    return NOTHING


def _number(text: str, kind: str) -> Any:
    if len(text) > _MOST_DIGITS or not _NUMBER.fullmatch(text):
        return NOTHING
    if text.lstrip("+-").isdigit():
        return int(text)
    number = float(text)
    if not math.isfinite(number):
        return NOTHING
    return number if kind == "number" else _converted(number, kind)


def _decoded(text: str, kind: str) -> Any:
    try:
        found = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
        return NOTHING
    return found if type_of(found) == kind else NOTHING


def _written(value: float) -> Any:
    try:
        return json.dumps(value, allow_nan=False)
    except ValueError:  # no JSON number; or an integer of thousands of digits
        return NOTHING
