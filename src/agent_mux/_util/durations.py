"""Durations as people write them: a number with a unit (`60s`, `10m`, `1.5h`), or a bare number of seconds."""

import math
import re

UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
"""The units of a duration, in seconds."""
EXPECTED = "seconds, or a number and ms, s, m, h or d (90s, 10m)"
_WITH_UNIT = re.compile(r"([0-9]+(?:\.[0-9]*)?)(ms|s|m|h|d|w)")
_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]*)?")
_SMALLEST_SHOWN = {"h": 3600.0, "m": 120.0}  # a minute and a half is 90s, a minute 60s
_PRECISION = 9  # digits of a second: 16.109 s are 16109 ms


def parse_duration(text: str) -> float:
    """Return the seconds of a duration; a number without a unit is seconds. Raises ValueError."""
    stripped = text.strip()
    found = _WITH_UNIT.fullmatch(stripped)
    if found is not None:
        return round(float(found[1]) * UNITS[found[2]], _PRECISION)
    if _NUMBER.fullmatch(stripped) is None:
        raise ValueError(f"{text!r} is not a duration; give {EXPECTED}")
    return float(stripped)


def has_unit(text: str) -> bool:
    """Return whether a text is a duration with a unit."""
    return _WITH_UNIT.fullmatch(text.strip()) is not None


def as_seconds(value: object) -> object:
    """Return the seconds of a text with a unit; any other value unchanged, for the validation to report."""
    return parse_duration(value) if isinstance(value, str) and has_unit(value) else value


def format_duration(seconds: float) -> str:
    """Return a duration with a unit, which `parse_duration` reads as the same number: `60s`, `10m`, `250ms`."""
    if not math.isfinite(seconds):
        return f"{seconds}s"
    for unit, smallest in _SMALLEST_SHOWN.items():
        if seconds >= smallest and seconds % UNITS[unit] == 0:
            return f"{seconds / UNITS[unit]:.0f}{unit}"
    milliseconds = round(seconds * 1000, _PRECISION - 3)
    if 0 < seconds < 1 and milliseconds == int(milliseconds):
        return f"{int(milliseconds)}ms"
    return f"{seconds:.0f}s" if seconds == int(seconds) else f"{_decimal(seconds)}s"


def _decimal(seconds: float) -> str:
    """Return a number without an exponent, which a duration cannot have."""
    return f"{seconds:.{_PRECISION}f}".rstrip("0").rstrip(".")
