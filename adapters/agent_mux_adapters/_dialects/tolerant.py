"""Tolerant reading of native JSON objects: nothing is believed about a value before it was looked at.

Where a line cannot be understood without a field, `need_*` raises `WrongShapeError`, and the codec shows the line as
`Unknown`. Everything else has a harmless value when it is missing or of another type.
"""

import json
from collections.abc import Mapping
from typing import Any

LARGEST = 2**53  # what survives every JSON reader


class WrongShapeError(ValueError):
    """A field without which the line means nothing is missing or of another type."""


def mapping(value: Any) -> Mapping[str, Any]:
    """The object, or an empty one."""
    return value if isinstance(value, dict) else {}


def rows(value: Any) -> list[Mapping[str, Any]]:
    """The objects of a list."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def text(value: Any) -> str:
    """The string, or an empty one."""
    return value if isinstance(value, str) else ""


def whole(value: Any) -> int:
    """The count: a whole number, never negative."""
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value:  # noqa: PLR0124  # NaN
        return 0
    return int(min(max(value, 0), LARGEST))


def optional_whole(value: Any) -> int | None:
    """The count, or None where there is no number."""
    return whole(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def dollars(value: Any) -> float:
    """The amount: finite, never negative."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= LARGEST:
        return 0.0
    return float(value)


def need_mapping(line: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """The object under `key`."""
    value = line.get(key)
    if not isinstance(value, dict):
        raise WrongShapeError(key)
    return value


def need_text(line: Mapping[str, Any], key: str) -> str:
    """The non-empty string under `key`."""
    value = line.get(key)
    if not isinstance(value, str) or not value:
        raise WrongShapeError(key)
    return value


def kind_of(line: Mapping[str, Any]) -> str:
    """The native type as it is named in facts: `system/init`, `assistant`."""
    kind, subtype = text(line.get("type")), text(line.get("subtype"))
    return f"{kind}/{subtype}" if subtype else kind


def as_json(value: Any) -> str:
    """JSON text of anything that came out of JSON."""
    # The standard library writes integers of any size.
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
