"""Durations in settings files: written with a unit (`"60s"`), and milliseconds where a number stands alone.

The wire (requests, journals, events) has milliseconds, Python and flags have seconds. See docs/spec/run-api.md.
"""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from agent_mux._util.durations import format_duration, has_unit, parse_duration
from agent_mux.errors import FieldError, ValidationError
from agent_mux.sdk.options import DURATIONS, RETRY_DURATIONS

FILE_DURATION = 'a duration with a unit, such as "60s", "10m" or "1.5h" (ms, s, m, h, d)'
WIRE_DURATION = "a number of milliseconds"
SECOND, MILLISECOND = 1.0, 0.001
_AGENTS, _RETRY = "agents", "retryPolicy"
_Path = tuple[str, ...]


def seconds_from_file(value: Any) -> float | None:
    """Return the seconds of a duration in a file: a text with a unit, or a number of milliseconds; None: neither."""
    if isinstance(value, str):
        return parse_duration(value) if has_unit(value) else None
    return value / 1000 if _is_number(value) else None


def with_units(content: Mapping[str, Any], *, bare: float) -> dict[str, Any]:
    """Return the content of a settings file, or changes of it, with a unit at each duration.

    Args:
        content: JSON keys; `a.b` is the key `b` of the object `a`.
        bare: The seconds of a number without a unit: `SECOND` for what a person typed, `MILLISECOND` for JSON.
    """

    def convert(value: Any) -> Any:
        number = float(value) if isinstance(value, str) and value.strip().isdecimal() else value
        return format_duration(number * bare) if _is_number(number) and number >= 0 else value

    return _convert_durations(content, convert)


def in_milliseconds(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return the content of a settings file with durations as on the wire: numbers of milliseconds."""

    def convert(value: Any) -> Any:
        seconds = seconds_from_file(value) if isinstance(value, str) else None
        return value if seconds is None else milliseconds(seconds)

    return _convert_durations(content, convert)


def milliseconds(seconds: float) -> float:
    """Return a number of milliseconds, whole where it is: 16.109 * 1000 is not 16109."""
    found = round(seconds * 1000, 6)
    return int(found) if found == int(found) else found


def duration_warnings(path: Path, content: Mapping[str, Any]) -> tuple[str, ...]:
    """Return a sentence for each duration of a file that has no unit: the file, the key, and what to write."""
    return tuple(
        f'{path}: {key} is {value:g} without a unit, which means milliseconds; write "{format_duration(value / 1000)}"'
        for key, value in _durations(content, ())
        if _is_number(value) and value > 0
    )


def check_wire_durations(content: Mapping[str, Any]) -> None:
    """Raise `ValidationError` for durations with a unit: what a program sends has milliseconds."""
    texts = [FieldError(key, value, WIRE_DURATION) for key, value in _durations(content, ()) if isinstance(value, str)]
    if texts:
        raise ValidationError(texts)


def _durations(content: Mapping[str, Any], above: _Path) -> Iterator[tuple[str, Any]]:
    for key, value in content.items():
        path = (*above, *key.split("."))
        if _is_duration(path):
            yield ".".join(path), value
        elif isinstance(value, Mapping) and _contains_durations(path):
            yield from _durations(value, path)


def _convert_durations(content: Mapping[str, Any], convert: Callable[[Any], Any], above: _Path = ()) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in content.items():
        path = (*above, *key.split("."))
        if _is_duration(path):
            found[key] = convert(value)
        elif isinstance(value, Mapping) and _contains_durations(path):
            found[key] = _convert_durations(value, convert, path)
        else:
            found[key] = value
    return found


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(map(str.capitalize, rest))


_KEYS = frozenset({(_camel(name),) for name in DURATIONS - RETRY_DURATIONS}) | frozenset(
    {(_RETRY, _camel(name)) for name in RETRY_DURATIONS}
)


def _of_options(path: _Path) -> _Path:
    """Return the path within options: `agents.codex.timeout` is `timeout`."""
    return path[2:] if path[:1] == (_AGENTS,) and len(path) > 1 else path


def _is_duration(path: _Path) -> bool:
    return _of_options(path) in _KEYS


def _contains_durations(path: _Path) -> bool:
    return path == (_AGENTS,) or _of_options(path) in {(), (_RETRY,)}


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
