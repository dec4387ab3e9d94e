"""What the agents' own listings of models have in common: numbers that are not believed, prices, JSON behind noise."""

import json
from collections.abc import Mapping
from typing import Any

from agent_mux.models import Price
from agent_mux_adapters._dialects.tolerant import dollars, rows, whole

__all__ = ["objects_under", "price", "tokens"]


def objects_under(key: str, printed: str) -> list[Mapping[str, Any]]:
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


def tokens(value: Any) -> int | None:
    """A size; None where none is told."""
    return whole(value) or None


def price(fields: Mapping[str, Any], *, read: Any, written: Any) -> Price | None:
    """US dollars for a million tokens. 0 for all of it says nothing: that is what agents show of unknown prices."""
    taken, given = dollars(fields.get("input")), dollars(fields.get("output"))
    if not taken and not given:
        return None
    return Price(taken, given, dollars(read) or None, dollars(written) or None)
