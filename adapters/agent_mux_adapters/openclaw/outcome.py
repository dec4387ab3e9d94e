"""Failures and retries of OpenClaw: the error code of a failure, and the log of the gateway.

A failure is classified by OpenClaw's own name for the reason, by the HTTP status, or by its message. ACP reports
nothing about failed model calls, so the log is the evidence: the gateway prints one JSON object per line. `agent exec`
prints the same messages as text; only its retries are read, as its document contains the failure.
"""

import datetime as dt
import re
from collections.abc import Mapping
from typing import Any

from agent_mux.sdk import ErrorCode
from agent_mux.sdk.facts import Fact, Failure, RateLimited, Retrying
from agent_mux_adapters._dialects.acp import code_of as code_by_words
from agent_mux_adapters._dialects.network import network_code_of
from agent_mux_adapters._dialects.tolerant import text

_REASONS: dict[str, ErrorCode] = {
    "auth": "AUTH_ERROR",
    "auth_permanent": "AUTH_ERROR",
    "billing": "RATE_LIMITED",
    "context_overflow": "CONTEXT_EXCEEDED",
    "overloaded": "RATE_LIMITED",
    "rate_limit": "RATE_LIMITED",
    "session_expired": "AUTH_ERROR",
    "timeout": "TIMEOUT",
}
_PHRASES: tuple[tuple[str, ErrorCode], ...] = (
    ("context overflow", "CONTEXT_EXCEEDED"),
    ("auth/billing failure", "AUTH_ERROR"),  # of an earlier request: OpenClaw does not use the key for a minute
    ("no api key found", "AUTH_ERROR"),
    ("timed out", "TIMEOUT"),
    ("the provider refused this request", "CONTENT_FILTERED"),
)
_TOKENS = re.compile(r"(\d{1,12}) tokens > (\d{1,12})")
_RATE_LIMIT_REASONS = frozenset({"overloaded", "rate_limit"})
_RETRY = re.compile(r"transient same-model retry (\d{1,6})/(\d{1,6}) for \S* reason=(\w+): delayMs=(\d{1,9})")
_GIVEN_UP = re.compile(r"model fallback decision: .{0,500}? reason=timeout .{0,500}?\bdetail=(.{1,200})$")
_CALL_FAILED = "embedded_run_agent_end"
_TURN_FAILED = "Embedded agent failed before reply: "


def failure_of(message: str, *, reason: str = "", status: int = 0, cause: str = "") -> Failure:
    """Return the failure with this message, OpenClaw's own name for the reason, and the HTTP status.

    OpenClaw calls every failed connection a timeout; the message of its HTTP client, the `cause`, distinguishes them.
    """
    message = message.removeprefix("⚠️").strip() or "openclaw gave no reason for the failure"
    code = _REASONS.get(reason) or _code_of(message, status)
    if code == "TIMEOUT" and "NETWORK_ERROR" in {network_code_of(message), network_code_of(cause)}:
        code, message = "NETWORK_ERROR", f"{message} ({cause})" if cause and cause not in message else message
    counts = _TOKENS.search(message) if code == "CONTEXT_EXCEEDED" else None
    used, limit = map(int, counts.groups()) if counts is not None else (0, 0)
    return Failure(code, message, used_tokens=used, max_tokens=limit)


def _code_of(message: str, status: int) -> ErrorCode:
    lowered = message.lower()
    return next((code for phrase, code in _PHRASES if phrase in lowered), None) or code_by_words(message, status)


# -- the log


def retry_in(message: str) -> tuple[Fact, ...]:
    """Return the facts of a log message about a model call that is repeated; nothing for other messages."""
    match = _RETRY.search(message)
    if match is None:
        return ()
    attempt, limit, reason, delay = match.groups()
    rate_limit = (RateLimited(int(delay)),) if reason in _RATE_LIMIT_REASONS else ()
    return *rate_limit, Retrying(int(attempt), int(limit), reason, int(delay))


def cause_in(line: str) -> str:
    """Return the message of the HTTP client in a log line about a call that is given up; empty for other lines."""
    match = _GIVEN_UP.search(line)
    return match[1] if match is not None else ""


def time_of(entry: Mapping[str, Any]) -> int:
    """Return the time of a log entry in milliseconds since the epoch; 0 when it has none."""
    try:
        return int(dt.datetime.fromisoformat(text(entry.get("time"))).timestamp() * 1000)
    except (ValueError, OverflowError):
        return 0


def failure_in(entry: Mapping[str, Any]) -> Failure | None:
    """Return the failure of a model call that a log entry reports; None for other entries."""
    if entry.get("event") == _CALL_FAILED and entry.get("isError") is True:
        return _failed_call(entry)
    message = text(entry.get("message"))
    return failure_of(message.removeprefix(_TURN_FAILED)) if message.startswith(_TURN_FAILED) else None


def _failed_call(entry: Mapping[str, Any]) -> Failure:
    error, detail = text(entry.get("error")), text(entry.get("providerErrorMessagePreview"))
    message = f"{error} ({detail})" if detail and detail not in error else error
    status = text(entry.get("httpCode"))
    number = int(status) if status.isascii() and status.isdigit() and len(status) <= len("999") else 0
    cause = text(entry.get("rawErrorPreview"))
    return failure_of(message, reason=text(entry.get("failoverReason")), status=number, cause=cause)
