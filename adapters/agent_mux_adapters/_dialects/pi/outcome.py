"""Failures from the agent's messages, which quote the provider, mostly with the HTTP status in front."""

import re
from collections.abc import Sequence

from agent_mux.sdk import ErrorCode
from agent_mux.sdk.facts import Fact, Failure, RateLimited, Retrying
from agent_mux_adapters._dialects.network import network_code_of
from agent_mux_adapters._dialects.pi.extension import NO_MCP

ABORTED = frozenset({
    "Interrupted by user", "Operation aborted", "Request was aborted", "Request was aborted.", "Retry cancelled",
    "The operation was aborted", "The operation was aborted.", "This operation was aborted",
})  # fmt: skip
"""Messages of an interruption that the agent reports as an error."""

_STATUS = re.compile(r"(?:HTTP |status(?: code)?:? )?(\d{3})\b")
_STATUSES: dict[int, ErrorCode] = {401: "AUTH_ERROR", 403: "AUTH_ERROR", 429: "RATE_LIMITED"}
# Lower case; the first that occurs decides.
_PHRASES: tuple[tuple[str, ErrorCode], ...] = (
    ("context_length_exceeded", "CONTEXT_EXCEEDED"),
    ("maximum context length", "CONTEXT_EXCEEDED"),
    ("prompt is too long", "CONTEXT_EXCEEDED"),
    ("context window", "CONTEXT_EXCEEDED"),
    ("context overflow", "CONTEXT_EXCEEDED"),
    ("input token count", "CONTEXT_EXCEEDED"),
    ("finish_reason: content_filter", "CONTENT_FILTERED"),
    ("insufficient_quota", "RATE_LIMITED"),
    ("rate limit", "RATE_LIMITED"),
    ("rate_limit", "RATE_LIMITED"),
    ("usage limit", "RATE_LIMITED"),
    ("too many requests", "RATE_LIMITED"),
    ("quota", "RATE_LIMITED"),
    ("no api key", "AUTH_ERROR"),
    ("invalid api key", "AUTH_ERROR"),
    ("incorrect api key", "AUTH_ERROR"),
    ("invalid_api_key", "AUTH_ERROR"),
    ("invalid x-api-key", "AUTH_ERROR"),
    ("authentication failed", "AUTH_ERROR"),
    ("authentication_error", "AUTH_ERROR"),
    ("unauthorized", "AUTH_ERROR"),
)
_REFUSALS: tuple[tuple[re.Pattern[str], ErrorCode], ...] = (
    (re.compile(r"no session found|session .* not found", re.IGNORECASE), "SESSION_NOT_FOUND"),
    (re.compile(r"no api key|no models available|set an api key", re.IGNORECASE), "AUTH_ERROR"),
)
"""Patterns on the standard error of an agent that ended before it began a turn."""
_NO_MODEL = re.compile(r"model .* not found", re.IGNORECASE)
"""An unknown model name; the advice in the same message would match `_REFUSALS`."""
_SIZES = (
    re.compile(r"maximum context length is (?P<limit>\d{1,12}) tokens.{0,80}?(?P<used>\d{1,12}) tokens", re.DOTALL),
    re.compile(r"(?P<used>\d{1,12}) tokens > (?P<limit>\d{1,12})"),
)
_WAIT = re.compile(r"(?:try again|retry) (?:in|after) (\d{1,6}(?:\.\d{1,6})?) ?(ms|s|m)", re.IGNORECASE)
_WAIT_MS = re.compile(r"retry-after-ms=(\d{1,9})")
_MILLISECONDS = {"ms": 1, "s": 1000, "m": 60_000}


def code_of(message: str, status: int | None = None) -> ErrorCode:
    """Return the error code for a message, by the HTTP status or by phrases of the provider."""
    words = message.lower()
    by_words = next((code for phrase, code in _PHRASES if phrase in words), None)
    if by_words == "CONTEXT_EXCEEDED":
        return by_words
    match = _STATUS.match(message)
    number = status if status is not None else int(match[1]) if match is not None else 0
    return _STATUSES.get(number) or by_words or ("AGENT_CRASH" if number else network_code_of(message))


def failure_of(message: str, status: int | None = None) -> Failure:
    """Build a failure from a message: its code, the time to wait, and the size of the context."""
    code = code_of(message, status)
    used, limit = _sizes_of(message) if code == "CONTEXT_EXCEEDED" else (0, 0)
    wait = _wait_of(message) if code == "RATE_LIMITED" else None
    return Failure(code, message, retry_after_ms=wait, used_tokens=used, max_tokens=limit)


def retrying(attempt: int, max_attempts: int, delay_ms: int, reason: str) -> tuple[Fact, ...]:
    """Return the facts for a model call that failed and is repeated."""
    limited = (RateLimited(_wait_of(reason)),) if code_of(reason) == "RATE_LIMITED" else ()
    return *limited, Retrying(attempt, max_attempts, reason, delay_ms)


def refusal_of(stderr_lines: Sequence[str]) -> Failure | None:
    """Return why the agent did not start, from its standard error; None when no known pattern matches."""
    stderr_text = "\n".join(stderr_lines)
    if NO_MCP in stderr_text:
        return Failure("CAPABILITY_ERROR", NO_MCP)
    if _NO_MODEL.search(stderr_text):
        return None
    code = next((code for pattern, code in _REFUSALS if pattern.search(stderr_text)), None)
    return Failure(code, stderr_text) if code is not None else None


def _sizes_of(message: str) -> tuple[int, int]:
    match = next((found for pattern in _SIZES if (found := pattern.search(message))), None)
    return (int(match["used"]), int(match["limit"])) if match is not None else (0, 0)


def _wait_of(message: str) -> int | None:
    exact = _WAIT_MS.search(message)
    if exact is not None:
        return int(exact[1])
    match = _WAIT.search(message)
    return int(float(match[1]) * _MILLISECONDS[match[2].lower()]) if match is not None else None
