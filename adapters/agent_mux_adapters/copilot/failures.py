"""What went wrong: from `session.error`, from refused requests, and from what the CLI says on standard error."""

from collections.abc import Mapping
from typing import Any

import msgspec

from agent_mux.errors import ErrorCode
from agent_mux.facts import Failure
from agent_mux_adapters._dialects.tolerant import mapping, text

_TYPES: Mapping[str, ErrorCode] = {
    "authentication": "AUTH_ERROR",
    "authorization": "AUTH_ERROR",
    "context_limit": "CONTEXT_EXCEEDED",
    "quota": "RATE_LIMITED",
    "rate_limit": "RATE_LIMITED",
}
_STATUSES: Mapping[int, ErrorCode] = {401: "AUTH_ERROR", 403: "AUTH_ERROR", 429: "RATE_LIMITED"}
# Lower case; the first that occurs decides.
_PHRASES: tuple[tuple[str, ErrorCode], ...] = (
    ("context length", "CONTEXT_EXCEEDED"),
    ("context window", "CONTEXT_EXCEEDED"),
    ("prompt is too long", "CONTEXT_EXCEEDED"),
    ("no github oauth token", "AUTH_ERROR"),
    ("no authentication information", "AUTH_ERROR"),
    ("authentication failed", "AUTH_ERROR"),
    ("not authenticated", "AUTH_ERROR"),
    ("session not found", "SESSION_NOT_FOUND"),
    ("cannot fork session", "SESSION_NOT_FOUND"),
    ("no session, task, or name matched", "SESSION_NOT_FOUND"),
    ("require an explicit model", "VALIDATION_ERROR"),
    ("rate limit", "RATE_LIMITED"),
)


def code_of(message: str, kind: str = "", status: Any = None) -> ErrorCode:
    """The error code: by Copilot's own name for it, by the HTTP status, else by its words."""
    if kind in _TYPES:
        return _TYPES[kind]
    if isinstance(status, int) and status in _STATUSES:
        return _STATUSES[status]
    words = message.lower()
    return next((code for phrase, code in _PHRASES if phrase in words), "AGENT_CRASH")


def failure_of(data: Mapping[str, Any], *, used_tokens: int = 0, max_tokens: int = 0) -> Failure:
    """What a `session.error` says. The counts are of the context, as far as it was told."""
    message = text(data.get("message")) or "copilot does not say why the turn failed"
    code = code_of(message, text(data.get("errorType")), data.get("statusCode"))
    full = code == "CONTEXT_EXCEEDED"
    return Failure(code, message, used_tokens=used_tokens if full else 0, max_tokens=max_tokens if full else 0)


def reason_of(data: Mapping[str, Any]) -> str:
    """Why a model call failed (`model.call_failure`): the words in the provider's error, which is JSON in a string."""
    said = text(data.get("errorMessage"))
    try:
        error = msgspec.json.decode(said.encode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return said
    return text(error) or text(mapping(error).get("message")) or said
