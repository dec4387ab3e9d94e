"""How a turn ended: by a `result` line, or by plain text on stdout or stderr when the CLI gives up."""

from collections.abc import Mapping
from typing import Any

from agent_mux.sdk import ErrorCode, facts
from agent_mux_adapters._dialects.network import network_code_of
from agent_mux_adapters._dialects.tolerant import mapping, optional_whole, text, whole

AUTH_GUIDANCE = "Run `cursor-agent login`, or set CURSOR_API_KEY."
# Lower case; the first phrase that occurs decides.
_PHRASES: tuple[tuple[str, ErrorCode], ...] = (
    ("authentication required", "AUTH_ERROR"),
    ("not logged in", "AUTH_ERROR"),
    ("invalid api key", "AUTH_ERROR"),
    ("api key is invalid", "AUTH_ERROR"),
    ("unauthenticated", "AUTH_ERROR"),
    ("usage limit", "RATE_LIMITED"),
    ("rate limit", "RATE_LIMITED"),
    ("resource_exhausted", "RATE_LIMITED"),
    ("too many requests", "RATE_LIMITED"),
    ("context window", "CONTEXT_EXCEEDED"),
    ("context length", "CONTEXT_EXCEEDED"),
    ("[unavailable]", "NETWORK_ERROR"),
    ("cannot use this model", "VALIDATION_ERROR"),
    ("workspace trust required", "CONFIG_ERROR"),
)
_UNKNOWN: ErrorCode = "AGENT_CRASH"


def closing_fact(line: Mapping[str, Any]) -> facts.Fact:
    """Return the fact of a `result` line, which closes the turn."""
    subtype = text(line.get("subtype"))
    if line.get("is_error") is not True and not subtype.startswith("error"):
        return facts.TurnDone()
    error = line.get("error")
    message = text(line.get("result")) or text(error) or text(mapping(error).get("message"))
    return facts.TurnFailed(failure_of(message or f"the agent reported {subtype or 'an error'}"))


def failure_of(message: str) -> facts.Failure:
    """Return the failure for a message; there are no error codes, so phrases decide."""
    code = code_of(message)
    return facts.Failure(code, message, AUTH_GUIDANCE if code == "AUTH_ERROR" else "")


def code_of(message: str) -> ErrorCode:
    """Return the error code for a message; AGENT_CRASH when no phrase is known."""
    lowered = message.lower()
    return next((code for phrase, code in _PHRASES if phrase in lowered), None) or network_code_of(message)


def failure_in_output(lines: list[str]) -> facts.Failure | None:
    """Return the failure that the CLI's last plain text lines state; None when no phrase is known."""
    known = next((message_text for message_text in reversed(lines) if code_of(message_text) != _UNKNOWN), None)
    return failure_of(known.removeprefix("Error: ")) if known is not None else None


def usage_of(line: Mapping[str, Any]) -> tuple[facts.Fact, ...]:
    """Return the tokens of the turn; nothing when the line has none. `inputTokens` exclude cached tokens."""
    usage_fields = mapping(line.get("usage"))
    usage = facts.Usage(
        input_tokens=whole(usage_fields.get("inputTokens")),
        output_tokens=whole(usage_fields.get("outputTokens")),
        cached_tokens=optional_whole(usage_fields.get("cacheReadTokens")),
        cache_creation_tokens=optional_whole(usage_fields.get("cacheWriteTokens")),
        of_one_call=False,
    )
    return (usage,) if usage_fields else ()
