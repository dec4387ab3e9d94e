"""Failures, retries and structured answers.

The app-server gives a failure a name or an HTTP status; `codex exec --json` describes it in prose only.
"""

import re
from typing import Any

import msgspec

from agent_mux.events.base import CostRecord
from agent_mux.sdk import ErrorCode
from agent_mux.sdk.facts import Fact, Failure, RateLimited, Retrying, TurnDone, TurnFailed
from agent_mux_adapters._dialects.network import network_code_of
from agent_mux_adapters._dialects.stop_reasons import answered, stop_reason_of

_NAMES: dict[str, ErrorCode] = {
    "contextWindowExceeded": "CONTEXT_EXCEEDED",
    "rateLimitExceeded": "RATE_LIMITED",
    "unauthorized": "AUTH_ERROR",
    "usageLimitExceeded": "RATE_LIMITED",
}
_STATUSES: dict[int, ErrorCode] = {401: "AUTH_ERROR", 403: "AUTH_ERROR", 429: "RATE_LIMITED"}
# Lower case; the first that occurs decides. An exhausted quota counts as a rate limit: logging in does not lift it.
_PHRASES: tuple[tuple[str, ErrorCode], ...] = (
    ("401 unauthorized", "AUTH_ERROR"),
    ("403 forbidden", "AUTH_ERROR"),
    ("429 too many requests", "RATE_LIMITED"),
    ("context window", "CONTEXT_EXCEEDED"),
    ("missing environment variable", "AUTH_ERROR"),
    ("incorrect api key", "AUTH_ERROR"),
    ("not logged in", "AUTH_ERROR"),
    ("log in again", "AUTH_ERROR"),
    ("sign in again", "AUTH_ERROR"),
    ("rate limit", "RATE_LIMITED"),
    ("usage limit", "RATE_LIMITED"),
    ("quota exceeded", "RATE_LIMITED"),
)
_NO_SESSION = ("no rollout found", "thread not found", "invalid session id", "invalid thread id")
_INCOMPLETE = "Incomplete response returned, reason: "
_RETRY = re.compile(r"Reconnecting\.\.\. (?:(\d{1,6})/(\d{1,6})|waiting for network)(?: \((.*)\))?", re.DOTALL)
_WAIT = re.compile(r"try again in (\d{1,6}(?:\.\d{1,6})?) ?(ms|s|m)")
_MILLISECONDS = {"ms": 1, "s": 1000, "m": 60_000}


def error_code_of(message: str, info: Any = None) -> ErrorCode:
    """Return the error code of a failure: by Codex's own name for it, by the HTTP status, else by its prose."""
    if isinstance(info, str) and info in _NAMES:
        return _NAMES[info]
    if isinstance(info, dict):
        for details in info.values():
            status = details.get("httpStatusCode") if isinstance(details, dict) else None
            if isinstance(status, int) and status in _STATUSES:
                return _STATUSES[status]
    words = message.lower()
    return next((code for phrase, code in _PHRASES if phrase in words), None) or network_code_of(message)


def incomplete_answer(message: str, cost: CostRecord | None = None) -> TurnDone | TurnFailed | None:
    """Return the closing fact of a turn whose answer the provider ended early; None for any other failure."""
    _, found, reason = message.partition(_INCOMPLETE)
    return answered(reason.strip(), cost) if stop_reason_of(reason.strip()) is not None and found else None


def failure_of(message: str, info: Any = None, *, used_tokens: int = 0, max_tokens: int = 0) -> Failure:
    """Return the failure of a turn. The counts are those of the context, 0 when unknown."""
    code = error_code_of(message, info)
    full = code == "CONTEXT_EXCEEDED"
    return Failure(
        code,
        message,
        retry_after_ms=_wait_of(message) if code == "RATE_LIMITED" else None,
        used_tokens=used_tokens if full else 0,
        max_tokens=max_tokens if full else 0,
    )


def session_error_code_of(message: str) -> ErrorCode:
    """Return the error code for a thread that could not be opened."""
    words = message.lower()
    return "SESSION_NOT_FOUND" if any(phrase in words for phrase in _NO_SESSION) else error_code_of(message)


def read_retry(message: str, details: str | None, info: Any, *, nth: int) -> tuple[Fact, ...] | None:
    """Return the facts of a "Reconnecting..." message; None for any other. `nth`: which retry of the turn this is.

    While Codex waits for the network it neither counts nor limits its attempts: the highest attempt is then 0.
    """
    match = _RETRY.match(message)
    if match is None:
        return None
    attempt, most, inside = match.groups()
    reason = details or inside or message
    facts: tuple[Fact, ...] = (Retrying(int(attempt or nth), int(most or 0), reason),)
    if error_code_of(reason, info) == "RATE_LIMITED":
        facts = (RateLimited(_wait_of(reason)), *facts)
    return facts


def parse_structured_output(text: str, schema: dict[str, Any] | None) -> Any:
    """Parse the last message as JSON when the run has an output schema; None when it has none or on invalid JSON."""
    if schema is None:
        return None
    try:
        return msgspec.json.decode(text.encode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None


def _wait_of(message: str) -> int | None:
    match = _WAIT.search(message)
    return int(float(match[1]) * _MILLISECONDS[match[2]]) if match is not None else None
