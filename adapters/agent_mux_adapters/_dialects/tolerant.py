"""Tolerant reading of native JSON values: a missing field or an unexpected type yields a default.

Where a line cannot be understood without a field, `need_*` raises `WrongShapeError`, and the codec reports the line as
`Unknown`.
"""

import json
from collections.abc import Mapping
from typing import Any

from agent_mux.sdk.facts import AgentVersion
from agent_mux.sdk.models import Price
from agent_mux.sdk.versions import find_version

LARGEST = 2**53  # the largest integer that every JSON reader keeps exactly


class WrongShapeError(ValueError):
    """A required field of a native line is missing or has the wrong type."""


def mapping(value: Any) -> Mapping[str, Any]:
    """Return the value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def rows(value: Any) -> list[Mapping[str, Any]]:
    """Return the objects in a list, skipping other items; an empty list for any other value."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def text(value: Any) -> str:
    """Return the value if it is a string, else an empty string."""
    return value if isinstance(value, str) else ""


def whole(value: Any) -> int:
    """Return a count: the number as a non-negative integer, capped at `LARGEST`; 0 for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value:  # noqa: PLR0124  # NaN
        return 0
    return int(min(max(value, 0), LARGEST))


def optional_whole(value: Any) -> int | None:
    """Return a count as `whole` does, or None when the value is not a number."""
    return whole(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def dollars(value: Any) -> float:
    """Return an amount: finite and not negative, 0.0 for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= LARGEST:
        return 0.0
    return float(value)


def need_mapping(line: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """Return the object under `key`; raise `WrongShapeError` if there is none."""
    value = line.get(key)
    if not isinstance(value, dict):
        raise WrongShapeError(key)
    return value


def need_text(line: Mapping[str, Any], key: str) -> str:
    """Return the non-empty string under `key`; raise `WrongShapeError` if there is none."""
    value = line.get(key)
    if not isinstance(value, str) or not value:
        raise WrongShapeError(key)
    return value


def kind_of(line: Mapping[str, Any]) -> str:
    """Return the type of a line as facts name it, such as `system/init` or `assistant`."""
    kind, subtype = text(line.get("type")), text(line.get("subtype"))
    return f"{kind}/{subtype}" if subtype else kind


def as_json(value: Any) -> str:
    """Return compact JSON text of a value that was parsed from JSON."""
    # The standard library writes integers of any size.
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


# -- what the model listings of agents share


def printed_objects(key: str, printed: str) -> list[Mapping[str, Any]]:
    """Return the objects in the list `key` of a printed JSON object.

    Text before the object is skipped. Raises `ValueError` when the object or the list is missing.
    """
    start = printed.find("{")
    if start < 0:
        raise ValueError("not a JSON object")
    try:
        found, _ = json.JSONDecoder().raw_decode(printed, start)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    if not isinstance(found.get(key), list):
        raise ValueError(f"no list {key!r}")  # noqa: TRY004  # of a value that is wrong, not of a type
    return rows(found[key])


def token_limit(value: Any) -> int | None:
    """Return a limit in tokens; None when it is missing or 0."""
    return whole(value) or None


def listed_price(fields: Mapping[str, Any], *, read: Any, written: Any) -> Price | None:
    """Return a price in US dollars per million tokens.

    None when input and output are both 0, which agents print for unknown prices.
    """
    taken, given = dollars(fields.get("input")), dollars(fields.get("output"))
    if not taken and not given:
        return None
    return Price(taken, given, dollars(read) or None, dollars(written) or None)


def version_fact(value: Any) -> tuple[AgentVersion, ...]:
    """Return the fact for the version that an agent reports; empty for a value without a version."""
    version = find_version(text(value))
    return (AgentVersion(version),) if version else ()
