"""Check one value against its JSON Schema, and coerce it to a type that the schema allows.

No function raises, whatever the schema and the value are.
"""

import json
import math
import re
from collections import deque
from collections.abc import Mapping
from typing import Any

import msgspec

NOTHING: Any = object()
"""The result of `coerce` if no coercion makes the value match its schema."""

DEPTH = 32
"""The most nested references and unions that are followed; anything deeper matches, so that recursion ends."""

_YES, _NO = frozenset({"true", "yes", "1"}), frozenset({"false", "no", "0"})
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_MOST_DIGITS = 400
"""The longest number that is parsed: more digits than any float has. Python limits the digits of integers."""
_KINDS: tuple[tuple[str, type | tuple[type, ...]], ...] = (
    ("null", type(None)),
    ("boolean", bool),  # before "integer": bool is a subclass of int
    ("integer", int),
    ("number", float),
    ("string", str),
    ("object", Mapping),
)
_PREFERRED = ("integer", "number", "boolean", "array", "object", "string")
"""The order in which the types of a union are tried. "1" becomes a number rather than true."""


def type_of(value: Any) -> str:
    """Return the JSON type of a value."""
    return next((name for name, kinds in _KINDS if isinstance(value, kinds)), "array")


def fits(value: Any, schema: Any, root: Mapping[str, Any]) -> bool:
    """Whether a value has the type, `enum` and `const` of the schema, through unions and references into `root`."""
    return _SchemaMatcher(value, root).fits(schema)


class _SchemaMatcher:
    """Checks one value against the parts of a schema, each part once: a hostile schema may consist of references."""

    def __init__(self, value: Any, root: Mapping[str, Any]) -> None:
        self._value = value
        self._root = root
        self._results: dict[int, bool] = {}

    def fits(self, schema: Any, depth: int = DEPTH) -> bool:
        if not isinstance(schema, Mapping) or depth == 0:
            return schema is not False
        if id(schema) not in self._results:
            self._results[id(schema)] = True  # for references of the schema to itself
            self._results[id(schema)] = self._fits_parts(schema, depth - 1)
        return self._results[id(schema)]

    def _fits_parts(self, schema: Mapping[str, Any], depth: int) -> bool:
        parts = [_resolve_reference(schema, self._root), *_list_at(schema, "allOf")]
        unions = [union for key in ("anyOf", "oneOf") if (union := _list_at(schema, key))]
        return (
            _has_type(self._value, schema)
            and _is_allowed(self._value, schema)
            and all(self.fits(part, depth) for part in parts)
            and all(any(self.fits(part, depth) for part in union) for union in unions)
        )


def coerce(value: Any, schema: Any, root: Mapping[str, Any]) -> Any:
    """Return `value` converted to a type that matches the schema, `NOTHING` if there is none."""
    wanted = set(types_of(schema, root))
    candidates = (_convert(value, kind) for kind in _PREFERRED if kind in wanted)
    return next((found for found in candidates if found is not NOTHING and fits(found, schema, root)), NOTHING)


def types_of(schema: Any, root: Mapping[str, Any]) -> list[str]:
    """Return all types that the schema names, through unions and references; the outermost first."""
    types: dict[str, None] = {}
    seen: set[int] = set()
    waiting = deque([schema])
    while waiting:
        part = waiting.popleft()
        if not isinstance(part, Mapping) or id(part) in seen:
            continue
        seen.add(id(part))
        types.update(dict.fromkeys(_declared_types(part) + [type_of(member) for member in _allowed_values(part)]))
        waiting.append(_resolve_reference(part, root))
        waiting.extend(each for key in ("allOf", "anyOf", "oneOf") for each in _list_at(part, key))
    return list(types)


def _declared_types(schema: Mapping[str, Any]) -> list[str]:
    declared = schema.get("type")
    return (
        [declared]
        if isinstance(declared, str)
        else [each for each in _list_at(schema, "type") if isinstance(each, str)]
    )


def _allowed_values(schema: Mapping[str, Any]) -> list[Any]:
    return _list_at(schema, "enum") + ([schema["const"]] if "const" in schema else [])


def _list_at(schema: Mapping[str, Any], key: str) -> list[Any]:
    value = schema.get(key)
    return list(value) if isinstance(value, list | tuple) else []


def _has_type(value: Any, schema: Mapping[str, Any]) -> bool:
    declared = _declared_types(schema)
    kind = type_of(value)
    return not declared or kind in declared or (kind == "integer" and "number" in declared)


def _is_allowed(value: Any, schema: Mapping[str, Any]) -> bool:
    members = _allowed_values(schema)
    return not members or any(_equal(value, member) for member in members)


def _equal(one: Any, other: Any) -> bool:
    """Whether two values are equal as JSON, where true is not 1."""
    return bool(one == other) and isinstance(one, bool) == isinstance(other, bool)


def _resolve_reference(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Any:
    """Return the target of `$ref`; True (any value) if there is no `$ref` or it cannot be resolved."""
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


def _convert(value: Any, kind: str) -> Any:
    match kind, value:
        case "integer" | "number", str():
            return _parse_number(value.strip(), kind)
        case "integer", float() if math.isfinite(value) and value.is_integer():
            return int(value)
        case "boolean", str():
            word = value.strip().lower()
            return word in _YES if word in _YES | _NO else NOTHING
        case "array" | "object", str():
            return _decode(value, kind)
        case "string", bool() | int() | float():
            return _to_text(value)
    return NOTHING


def _parse_number(text: str, kind: str) -> Any:
    if len(text) > _MOST_DIGITS or not _NUMBER.fullmatch(text):
        return NOTHING
    if text.lstrip("+-").isdigit():
        return int(text)
    number = float(text)
    if not math.isfinite(number):
        return NOTHING
    return number if kind == "number" else _convert(number, kind)


def _decode(text: str, kind: str) -> Any:
    try:
        found = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
        return NOTHING
    return found if type_of(found) == kind else NOTHING


def _to_text(value: float) -> Any:
    try:
        return json.dumps(value, allow_nan=False)
    except ValueError:  # NaN, infinity, or an integer with thousands of digits
        return NOTHING
