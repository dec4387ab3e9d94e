"""Typed access to the lines of Claude Code. Nothing is believed about a line's shape before it was looked at.

`Line` is the one `msgspec` decode of the hot path: only what a streamed fragment needs, everything else is skipped.
All other lines are read as plain objects through the small functions below; where a line cannot be understood
without a field, `need_*` raises `WrongShapeError`, and the codec shows the line as `Unknown`.
"""

import math
from collections.abc import Mapping
from typing import Any

import msgspec

LARGEST = 2**53  # what survives every JSON reader


class Delta(msgspec.Struct, gc=False):
    """The fragment of a `content_block_delta`."""

    type: str = ""
    text: str | None = None
    thinking: str | None = None
    partial_json: str | None = None


class StreamEvent(msgspec.Struct, gc=False):
    """An event of the model's own stream, as far as fragments go."""

    type: str
    index: int = 0
    delta: Delta | None = None


class Line(msgspec.Struct, gc=False):
    """Any line, as far as fragments go. The keys may come in any order: `type` is often the last."""

    type: str
    event: StreamEvent | None = None
    parent_tool_use_id: str | None = None


decode_line = msgspec.json.Decoder(Line).decode


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
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return 0
    return min(max(int(value), 0), LARGEST)


def optional_whole(value: Any) -> int | None:
    """The count, or None where there is no number."""
    return whole(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def dollars(value: Any) -> float:
    """The amount: finite, never negative."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return 0.0
    return max(float(value), 0.0)


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
    return msgspec.json.encode(value).decode()
