"""The rate limits of an account: `account/rateLimits/updated` of the app-server, `rate_limits` of stored rollouts.

Both have the same content; the app-server writes camelCase, rollouts write snake_case. Measured with 0.169.0; rollouts
from 0.42 on have `window_minutes`, and before that `resets_in_seconds` instead of `resets_at`, which is not read
because it counts from an unknown time.
"""

from collections.abc import Mapping
from typing import Any

from agent_mux.events.base import QuotaWindow
from agent_mux_adapters._dialects.quota import quota_window
from agent_mux_adapters._dialects.tolerant import mapping, text

MAIN_LIMIT = "codex"
"""The limit of ordinary models. Others are limits of single models."""
_NAMES = {300: "five_hour", 1440: "one_day", 10_080: "seven_day", 43_200: "thirty_day"}
"""Names of windows by their duration in minutes."""


def read_windows(limits: Mapping[str, Any]) -> tuple[QuotaWindow, ...]:
    """Return the windows of a snapshot; empty for an account without limits, such as one with an API key."""
    limit = text(_get(limits, "limitName")) or text(_get(limits, "limitId"))
    prefix = "" if limit in {"", MAIN_LIMIT} else f"{limit} "
    windows = [_window(prefix, place, mapping(limits.get(place))) for place in ("primary", "secondary")]
    individual = mapping(_get(limits, "individualLimit"))
    windows.append(
        quota_window(
            f"{prefix}individual",
            used=_used(individual, "remainingPercent", is_remainder=True),
            resets_at=_get(individual, "resetsAt"),
        )
    )
    return tuple(window for window in windows if window is not None)


def _window(prefix: str, place: str, native: Mapping[str, Any]) -> QuotaWindow | None:
    minutes = _get(native, "windowDurationMins") or native.get("window_minutes")
    name = _NAMES.get(minutes, place) if isinstance(minutes, int) else place
    return quota_window(f"{prefix}{name}", used=_used(native, "usedPercent"), resets_at=_get(native, "resetsAt"))


def _used(native: Mapping[str, Any], name: str, *, is_remainder: bool = False) -> float | None:
    percent = _get(native, name)
    if not isinstance(percent, int | float) or isinstance(percent, bool):
        return None
    return (100 - percent if is_remainder else percent) / 100


def _get(native: Mapping[str, Any], name: str) -> Any:
    """Return the value of a key in camelCase, or in snake_case."""
    snake = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)
    return native.get(name, native.get(snake))
