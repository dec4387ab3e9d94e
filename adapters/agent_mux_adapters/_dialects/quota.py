"""Windows of a provider's quota from numbers as agents print them."""

from typing import Any

from agent_mux.events.base import QuotaWindow

_LATEST = 1 << 33  # seconds since the epoch, in the year 2242; a larger number is not a time in seconds


def quota_window(name: str, *, used: Any = None, resets_at: Any = None) -> QuotaWindow | None:
    """Return a window; None if it has neither number.

    Args:
        name: The window's name.
        used: The used part of the quota, 0 to 1.
        resets_at: When the window resets, in seconds since the epoch.
    """
    fraction = min(max(float(used), 0.0), 1.0) if _is_number(used) else None
    reset = round(resets_at * 1000) if _is_number(resets_at) and 0 < resets_at < _LATEST else None
    return None if fraction is None and reset is None else QuotaWindow(name, fraction, reset)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value == value  # noqa: PLR0124  # NaN
