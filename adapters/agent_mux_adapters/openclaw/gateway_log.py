"""What the log tells of a run. ACP tells nothing about failed model calls, so the log is the evidence.

The gateway writes a JSON object a line; `agent exec` writes the same messages as text. Of those we read the retries:
why it failed is in its document.
"""

import datetime as dt
import re
from collections.abc import Mapping
from typing import Any

from agent_mux.facts import Fact, Failure, RateLimited, Retrying
from agent_mux_adapters._dialects.tolerant import text
from agent_mux_adapters.openclaw.failures import LIMITED, failure_of

_RETRY = re.compile(r"transient same-model retry (\d{1,6})/(\d{1,6}) for \S* reason=(\w+): delayMs=(\d{1,9})")
_CALL_FAILED = "embedded_run_agent_end"
_TURN_FAILED = "Embedded agent failed before reply: "


def retry_in(message: str) -> tuple[Fact, ...]:
    """The facts about a failed model call that is repeated; nothing for any other message."""
    match = _RETRY.search(message)
    if match is None:
        return ()
    attempt, most, reason, delay = match.groups()
    limited = (RateLimited(int(delay)),) if reason in LIMITED else ()
    return *limited, Retrying(int(attempt), int(most), reason, int(delay))


def time_of(entry: Mapping[str, Any]) -> int:
    """When an entry was made, in milliseconds since the epoch; 0 where it does not say."""
    try:
        return int(dt.datetime.fromisoformat(text(entry.get("time"))).timestamp() * 1000)
    except (ValueError, OverflowError):
        return 0


def failure_in(entry: Mapping[str, Any]) -> Failure | None:
    """Why a model call failed; None for an entry about anything else."""
    if entry.get("event") == _CALL_FAILED and entry.get("isError") is True:
        return _failed_call(entry)
    message = text(entry.get("message"))
    return failure_of(message.removeprefix(_TURN_FAILED)) if message.startswith(_TURN_FAILED) else None


def _failed_call(entry: Mapping[str, Any]) -> Failure:
    said, detail = text(entry.get("error")), text(entry.get("providerErrorMessagePreview"))
    whole = f"{said} ({detail})" if detail and detail not in said else said
    status = text(entry.get("httpCode"))
    number = int(status) if status.isascii() and status.isdigit() and len(status) <= len("999") else 0
    return failure_of(whole, reason=text(entry.get("failoverReason")), status=number)
