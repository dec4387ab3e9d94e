"""Tolerant reading of native JSON objects: nothing is believed about a value before it was looked at.

Where a line cannot be understood without a field, `need_*` raises `WrongShapeError`, and the codec shows the line as
`Unknown`. Everything else has a harmless value when it is missing or of another type.
"""

import json
from collections.abc import Mapping
from typing import Any

from agent_mux.models import Price

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


# TODO What the agents' own listings of models have in common: numbers that are not believed, prices, JSON behind noise.


def printed_objects(key: str, printed: str) -> list[Mapping[str, Any]]:
    """The list of a JSON object that was printed, whatever stands in front of it. Raises `ValueError`."""
    start = printed.find("{")
    if start < 0:
        raise ValueError("it is no JSON object")
    try:
        found, _ = json.JSONDecoder().raw_decode(printed, start)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    if not isinstance(found.get(key), list):
        raise ValueError(f"it has no list {key!r}")  # noqa: TRY004  # of a value that is wrong, not of a type
    return rows(found[key])


def token_limit(value: Any) -> int | None:
    """A size; None where none is told."""
    return whole(value) or None


def listed_price(fields: Mapping[str, Any], *, read: Any, written: Any) -> Price | None:
    """US dollars for a million tokens. 0 for all of it says nothing: that is what agents show of unknown prices."""
    taken, given = dollars(fields.get("input")), dollars(fields.get("output"))
    if not taken and not given:
        return None
    return Price(taken, given, dollars(read) or None, dollars(written) or None)
