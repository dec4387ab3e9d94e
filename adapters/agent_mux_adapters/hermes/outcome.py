"""Failures of Hermes. It has no error codes: the code follows from the message, which names the HTTP status if any."""

import re

from agent_mux.sdk import ErrorCode
from agent_mux.sdk.facts import Failure
from agent_mux_adapters._dialects.network import network_code_of

NO_REASON = "hermes gave no reason for the failed turn"
NO_SESSION = 4007
"""Error code of the gateway for a session that is not stored."""
_STATUS = re.compile(r"\bHTTP (\d{3})\b")
_STATUSES: dict[int, ErrorCode] = {401: "AUTH_ERROR", 402: "RATE_LIMITED", 403: "AUTH_ERROR", 429: "RATE_LIMITED"}
_TOKENS = re.compile(r"\(([\d,]{1,15}) tokens\)")
# Lower case; the first phrase in the message decides, a full context before its HTTP status, which is 400 or 413.
_PHRASES: tuple[tuple[str, ErrorCode], ...] = (
    ("context length", "CONTEXT_EXCEEDED"),
    ("context window", "CONTEXT_EXCEEDED"),
    ("request payload too large", "CONTEXT_EXCEEDED"),
    ("billing or credits exhausted", "RATE_LIMITED"),
    ("no llm provider configured", "AUTH_ERROR"),
    ("no api key", "AUTH_ERROR"),
    ("incorrect api key", "AUTH_ERROR"),
    ("invalid api key", "AUTH_ERROR"),
    ("rate limit", "RATE_LIMITED"),
    ("quota", "RATE_LIMITED"),
    ("safety refusal", "CONTENT_FILTERED"),
)


def code_of(message: str) -> ErrorCode:
    """Return the error code for a message of Hermes; `AGENT_CRASH` when the message is not recognised."""
    lowered = message.lower()
    if any(phrase in lowered for phrase, code in _PHRASES if code == "CONTEXT_EXCEEDED"):
        return "CONTEXT_EXCEEDED"
    found = _STATUS.search(message)
    if found is not None and int(found[1]) in _STATUSES:
        return _STATUSES[int(found[1])]
    by_phrase = next((code for phrase, code in _PHRASES if phrase in lowered), None)
    return by_phrase or ("AGENT_CRASH" if found is not None else network_code_of(message))


def failure_of(message: str) -> Failure:
    """Return the failure that a message describes, with the number of tokens of a full context."""
    code = code_of(message)
    tokens = _TOKENS.search(message) if code == "CONTEXT_EXCEEDED" else None
    return Failure(code, message or NO_REASON, used_tokens=int(tokens[1].replace(",", "")) if tokens else 0)


def session_failure(code: int, message: str) -> Failure:
    """Return the failure of a request to open a session."""
    return Failure("SESSION_NOT_FOUND", message) if code == NO_SESSION else failure_of(message)
