"""Fields of `RunOptions`, given by a program, as they stand in our files."""

import math
import os
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from agent_mux.errors import ValidationError
from agent_mux.sdk.options import McpServer, RetryPolicy
from agent_mux.settings.keys import DURATIONS, KEYS, Problems, camel
from agent_mux.settings.precedence import said_of


def to_wire(said: Mapping[str, Any], *, keys: Mapping[str, str] = KEYS) -> dict[str, Any]:
    """Fields as they stand in a file. `keys`: those that are allowed. Raises VALIDATION_ERROR for what cannot."""
    problems = Problems()
    told: dict[str, Any] = {}
    for name, value in said.items():
        if camel(name) not in keys:
            problems.unknown(camel(name), value, keys)
        elif isinstance(value, float) and not math.isfinite(value):
            problems.add(camel(name), value, "a number that JSON has")
        else:
            told[camel(name)] = _written(name, value)
    if problems.fields:
        raise ValidationError(problems.fields)
    return told


def _written(name: str, value: Any) -> Any:
    if name in DURATIONS and isinstance(value, int | float) and not isinstance(value, bool):
        milliseconds = round(value * 1000, 6)  # 16.109 * 1000 is not 16109
        return int(milliseconds) if milliseconds == int(milliseconds) else milliseconds
    if name == "retry_policy" and isinstance(value, RetryPolicy | Mapping):
        parts = said_of(value) if isinstance(value, RetryPolicy) else value
        return {camel(part): _written(part, one) for part, one in parts.items()}
    return _plain(value)


def _plain(value: Any) -> Any:
    """As JSON has it; what it has no word for stays as it is, and is complained about later."""
    match value:
        case McpServer():
            return {key: list(one) if isinstance(one, tuple) else one for key, one in asdict(value).items() if one}
        case os.PathLike():
            return os.fspath(value)
        case frozenset() | set():
            return sorted(value)
        case list() | tuple():
            return [_plain(one) for one in value]
    return value
