"""Failures from OpenCode's error objects: `{"name": ..., "data": {"message": ..., "statusCode": ...}}`."""

import re
from collections.abc import Mapping
from typing import Any

from agent_mux.sdk import ErrorCode
from agent_mux.sdk.facts import Failure
from agent_mux_adapters._dialects.network import network_code_of
from agent_mux_adapters._dialects.tolerant import as_json, mapping, text, whole

ABORTED = "MessageAbortedError"
OVERFLOW = "ContextOverflowError"
GUIDANCE = "run `opencode auth login`, or set the provider's API key in the environment"

_NAMES: dict[str, ErrorCode] = {
    ABORTED: "ABORTED",
    OVERFLOW: "CONTEXT_EXCEEDED",
    "NotFoundError": "SESSION_NOT_FOUND",
    "ProviderAuthError": "AUTH_ERROR",
}
_STATUSES: dict[int, ErrorCode] = {401: "AUTH_ERROR", 403: "AUTH_ERROR", 429: "RATE_LIMITED"}
# Lower case; the first match decides. Retries and unknown errors have a message only.
_PHRASES: tuple[tuple[str, ErrorCode], ...] = (
    ("api key", "AUTH_ERROR"),
    ("unauthorized", "AUTH_ERROR"),
    ("rate limit", "RATE_LIMITED"),
    ("rate_limit", "RATE_LIMITED"),
    ("too many requests", "RATE_LIMITED"),
    ("usage limit", "RATE_LIMITED"),
    ("quota", "RATE_LIMITED"),
    ("blocked by the provider's content filter", "CONTENT_FILTERED"),
)
_DEFAULTS = {"MessageOutputLengthError": "the answer exceeds the model's output token limit"}
_SIZES = (
    re.compile(r"maximum context length is (?P<most>\d{1,9}) tokens\D{1,60}(?P<used>\d{1,9}) tokens"),
    re.compile(r"(?P<used>\d{1,9}) tokens? (?:>|exceeds)\D{1,60}(?P<most>\d{1,9})"),
)
_SECONDS = re.compile(r"\d{1,6}")


def failure_of(error: Any) -> Failure:
    """Build a failure from an error object of any shape."""
    name, data = text(mapping(error).get("name")), mapping(mapping(error).get("data"))
    message = text(data.get("message")) or _DEFAULTS.get(name) or name or as_json(error)
    code = _NAMES.get(name) or _STATUSES.get(whole(data.get("statusCode"))) or code_of(message)
    used, most = _sizes(message) if code == "CONTEXT_EXCEEDED" else (0, 0)
    return Failure(
        code,
        message,
        guidance=GUIDANCE if code == "AUTH_ERROR" else "",
        retry_after_ms=_wait_of(data) if code == "RATE_LIMITED" else None,
        used_tokens=used,
        max_tokens=most,
    )


def code_of(message: str) -> ErrorCode:
    """Return the error code for a message without a known name or status."""
    words = message.lower()
    return next((code for phrase, code in _PHRASES if phrase in words), None) or network_code_of(message)


def is_abort(error: Any) -> bool:
    """Return whether the error reports that the agent was stopped."""
    return mapping(error).get("name") == ABORTED


def is_overflow(error: Any) -> bool:
    """Return whether the error reports that the context window is full."""
    return mapping(error).get("name") == OVERFLOW


def _sizes(message: str) -> tuple[int, int]:
    found = next(filter(None, (pattern.search(message) for pattern in _SIZES)), None)
    return (int(found["used"]), int(found["most"])) if found is not None else (0, 0)


def _wait_of(data: Mapping[str, Any]) -> int | None:
    seconds = text(mapping(data.get("responseHeaders")).get("retry-after"))
    return int(seconds) * 1000 if _SECONDS.fullmatch(seconds) else None
