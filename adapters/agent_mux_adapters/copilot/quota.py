"""`quotaSnapshots` of Copilot: premium requests and other quotas of the account, in `assistant.usage` and failures.

The fields are those of the schema of session events in 1.0.102. An account without Copilot's own models, such as one
with another provider, reports an empty object.
"""

from collections.abc import Mapping
from typing import Any

from agent_mux.events.base import QuotaWindow
from agent_mux.sdk.facts import QuotaReported
from agent_mux.sdk.session_files import parse_timestamp
from agent_mux_adapters._dialects.quota import quota_window
from agent_mux_adapters._dialects.tolerant import mapping


def read_quota(data: Mapping[str, Any]) -> tuple[QuotaReported, ...]:
    """Return the quotas that an event reports; empty without any."""
    windows = [_window(name, mapping(one)) for name, one in mapping(data.get("quotaSnapshots")).items()]
    reported = tuple(window for window in windows if window is not None)
    return (QuotaReported(reported),) if reported else ()


def _window(name: str, snapshot: Mapping[str, Any]) -> QuotaWindow | None:
    if snapshot.get("isUnlimitedEntitlement") is True:
        return None
    remaining: Any = snapshot.get("remainingPercentage")
    is_known = isinstance(remaining, int | float) and not isinstance(remaining, bool)
    used = 1 - remaining / 100 if is_known else None
    reset = parse_timestamp(snapshot.get("resetDate"))
    return quota_window(name, used=used, resets_at=None if reset is None else reset / 1000)
