"""`rate_limit_event`: the windows of the account's quota, which Claude Code reads from headers of its provider.

Measured with 2.1.330: `unifiedWindows` has every window, and the other fields describe the one that decides. Releases
without `unifiedWindows` print those fields only.
"""

from collections.abc import Mapping
from typing import Any

from agent_mux.events.base import QuotaWindow
from agent_mux.sdk import facts
from agent_mux_adapters._dialects.quota import quota_window
from agent_mux_adapters._dialects.tolerant import mapping, text

REJECTED = "rejected"
"""Status with which the provider refuses to answer."""


def read_quota(line: Mapping[str, Any]) -> tuple[facts.Fact, ...]:
    """Return the reported windows, and that the provider refuses if it does."""
    info = mapping(line.get("rate_limit_info"))
    status = text(info.get("status"))
    windows = _windows(info, is_rejected=status == REJECTED)
    reported = (facts.QuotaReported(windows),) if windows else ()
    limited = (facts.RateLimited(),) if status == REJECTED else ()
    known = (*reported, *limited)
    return known or (facts.Ignored("rate_limit_event", f"the provider still answers: {status or 'no status'}"),)


def _windows(info: Mapping[str, Any], *, is_rejected: bool) -> tuple[QuotaWindow, ...]:
    windows = {name: mapping(one) for name, one in mapping(info.get("unifiedWindows")).items()}
    deciding = text(info.get("rateLimitType")) or "unified"
    # The deciding window may lack its utilization, and a refused one is used up whatever its number is.
    stated = {name: info[name] for name in ("utilization", "resetsAt") if info.get(name) is not None}
    refused = {"utilization": 1.0} if is_rejected else {}
    windows[deciding] = {**windows.get(deciding, {}), **stated, **refused}
    found = (
        quota_window(name, used=one.get("utilization"), resets_at=one.get("resetsAt")) for name, one in windows.items()
    )
    return tuple(window for window in found if window is not None)
