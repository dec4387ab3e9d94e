"""The outcome of a turn of Qwen Code: from a `result` line to the fact that ends the turn."""

from collections.abc import Mapping
from typing import Any

from agent_mux.sdk import ErrorCode, facts
from agent_mux_adapters._dialects.tolerant import mapping, text

API_ERROR = "[API Error: "
"""The beginning of an API error, which the CLI prints as text of the model."""
CANCELLED = "Operation cancelled"
TURN_LIMIT_EXIT = 53
"""The exit code for `--max-session-turns`; in this case the CLI prints no `result` line."""
AUTH_GUIDANCE = "Run `qwen` and choose a provider with /auth, or set OPENAI_API_KEY, OPENAI_BASE_URL and OPENAI_MODEL."

_BY_STATUS: Mapping[str, ErrorCode] = {"401": "AUTH_ERROR", "403": "AUTH_ERROR", "429": "RATE_LIMITED"}
# In lower case; the first match decides.
_PHRASES: tuple[tuple[str, ErrorCode], ...] = (
    ("context length", "CONTEXT_EXCEEDED"),
    ("context window", "CONTEXT_EXCEEDED"),
    ("prompt is too long", "CONTEXT_EXCEEDED"),
    ("api key", "AUTH_ERROR"),
    ("rate limit", "RATE_LIMITED"),
    ("quota", "RATE_LIMITED"),
    ("no saved session", "SESSION_NOT_FOUND"),
)


def closing_fact(line: Mapping[str, Any]) -> facts.Fact:
    """Return the fact that ends the turn of a `result` line."""
    if line.get("is_error") is not True:
        return facts.TurnDone(structured_output=line.get("structured_result"))
    message = text(mapping(line.get("error")).get("message")) or text(line.get("subtype")) or "the agent failed"
    if message.startswith(CANCELLED):
        return facts.TurnStopped()
    return facts.TurnFailed(failure_of(message))


def failure_of(message: str) -> facts.Failure:
    """Return the failure of a message, classified by its HTTP status, else by its words."""
    if message.startswith(API_ERROR):
        message = message.removeprefix(API_ERROR).removesuffix("]")
    words = message.lower()
    by_words: ErrorCode = next((code for phrase, code in _PHRASES if phrase in words), "AGENT_CRASH")
    code = _BY_STATUS.get(message[:3], by_words)
    return facts.Failure(code, message, AUTH_GUIDANCE if code == "AUTH_ERROR" else "")
