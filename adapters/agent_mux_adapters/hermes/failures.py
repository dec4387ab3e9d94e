"""What went wrong, from Hermes' words: it has no error codes, but names the HTTP status where there was one."""

import re

from agent_mux.errors import ErrorCode
from agent_mux.facts import Failure

UNTOLD = "hermes does not say why the turn failed"
NO_SESSION = 4007
"""The gateway's own code for a session that is not stored."""
_STATUS = re.compile(r"\bHTTP (\d{3})\b")
_STATUSES: dict[int, ErrorCode] = {401: "AUTH_ERROR", 402: "RATE_LIMITED", 403: "AUTH_ERROR", 429: "RATE_LIMITED"}
_TOKENS = re.compile(r"\(([\d,]{1,15}) tokens\)")
# Lower case; the first that occurs decides. A full context comes with HTTP status 400 or 413.
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
)


def code_of(message: str) -> ErrorCode:
    """The error code for what Hermes says."""
    words = message.lower()
    if any(phrase in words for phrase, code in _PHRASES if code == "CONTEXT_EXCEEDED"):
        return "CONTEXT_EXCEEDED"
    found = _STATUS.search(message)
    if found is not None and int(found[1]) in _STATUSES:
        return _STATUSES[int(found[1])]
    return next((code for phrase, code in _PHRASES if phrase in words), "AGENT_CRASH")


def failure_of(message: str) -> Failure:
    """A failure in full."""
    code = code_of(message)
    tokens = _TOKENS.search(message) if code == "CONTEXT_EXCEEDED" else None
    return Failure(code, message or UNTOLD, used_tokens=int(tokens[1].replace(",", "")) if tokens else 0)


def session_failure(code: int, message: str) -> Failure:
    """A session that could not be opened."""
    return Failure("SESSION_NOT_FOUND", message) if code == NO_SESSION else failure_of(message)
