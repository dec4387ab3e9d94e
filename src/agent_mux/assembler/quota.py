"""The provider's quota as last reported, by window. See docs/spec/events.md, section 17.2."""

from collections.abc import Iterable
from math import isfinite

from agent_mux.events.base import QuotaWindow


class QuotaState:
    """The windows of the quota, each with its last report."""

    __slots__ = ("_windows",)

    def __init__(self) -> None:
        self._windows: dict[str, QuotaWindow] = {}

    @property
    def windows(self) -> tuple[QuotaWindow, ...]:
        """The windows, in the order in which they were first reported."""
        return tuple(self._windows.values())

    def update(self, reported: Iterable[QuotaWindow]) -> bool:
        """Store a report, with impossible numbers replaced. Returns whether it changes anything."""
        changed = {window.window: window for window in map(sanitize_window, reported)}
        if all(self._windows.get(name) == window for name, window in changed.items()):
            return False
        self._windows.update(changed)
        return True

    def clear(self) -> None:
        """Forget all windows, because another account answers from now on."""
        self._windows.clear()


def sanitize_window(window: QuotaWindow) -> QuotaWindow:
    """Return the window with its fraction between 0 and 1, and without numbers that cannot be read."""
    used, resets_at = window.used_fraction, window.resets_at
    return QuotaWindow(
        window.window,
        min(max(used, 0.0), 1.0) if used is not None and isfinite(used) else None,
        resets_at if resets_at is not None and resets_at > 0 else None,
    )
