"""What a failure of OpenClaw is: by its own name for the reason, by the HTTP status, else by its words."""

import re

from agent_mux.errors import ErrorCode
from agent_mux.facts import Failure
from agent_mux_adapters._dialects.acp import code_of as code_by_words

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
    ("auth/billing failure", "AUTH_ERROR"),  # of an earlier request: the key is not used for a minute
    ("no api key found", "AUTH_ERROR"),
    ("timed out", "TIMEOUT"),
)
_COUNTS = re.compile(r"(\d{1,12}) tokens > (\d{1,12})")
LIMITED = frozenset({"overloaded", "rate_limit"})
"""Reasons for a retry by which the provider slows us down."""


def failure_of(message: str, *, reason: str = "", status: int = 0) -> Failure:
    """A failure, from what OpenClaw says about it. `reason`: its own name; `status`: HTTP."""
    said = message.removeprefix("⚠️").strip() or "openclaw does not say why it failed"
    code = _REASONS.get(reason) or _code_of(said, status)
    counts = _COUNTS.search(said) if code == "CONTEXT_EXCEEDED" else None
    used, most = map(int, counts.groups()) if counts is not None else (0, 0)
    return Failure(code, said, used_tokens=used, max_tokens=most)


def _code_of(message: str, status: int) -> ErrorCode:
    words = message.lower()
    return next((code for phrase, code in _PHRASES if phrase in words), None) or code_by_words(message, status)
