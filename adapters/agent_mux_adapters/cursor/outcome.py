"""How a turn ended: by a `result` line, or, when the CLI gives up, by prose on stderr or in a bare line of stdout."""

from collections.abc import Mapping
from typing import Any

from agent_mux import facts
from agent_mux.errors import ErrorCode
from agent_mux_adapters._dialects.tolerant import mapping, optional_whole, text, whole

AUTH_GUIDANCE = "Run `cursor-agent login`, or set CURSOR_API_KEY."
# Lower case; the first that occurs decides.
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
    ("cannot use this model", "VALIDATION_ERROR"),
    ("workspace trust required", "CONFIG_ERROR"),
)
_UNKNOWN: ErrorCode = "AGENT_CRASH"


def closing_fact(line: Mapping[str, Any]) -> facts.Fact:
    """What closes the turn: a `result` line."""
    subtype = text(line.get("subtype"))
    if line.get("is_error") is not True and not subtype.startswith("error"):
        return facts.TurnDone()
    error = line.get("error")
    message = text(line.get("result")) or text(error) or text(mapping(error).get("message"))
    return facts.TurnFailed(failure_of(message or f"the agent reported {subtype or 'an error'}"))


def failure_of(message: str) -> facts.Failure:
    """A failure by its words: there are no codes."""
    code = code_of(message)
    return facts.Failure(code, message, AUTH_GUIDANCE if code == "AUTH_ERROR" else "")


def code_of(message: str) -> ErrorCode:
    """The code for these words; AGENT_CRASH where they say nothing known."""
    words = message.lower()
    return next((code for phrase, code in _PHRASES if phrase in words), _UNKNOWN)


def last_words(said: list[str]) -> facts.Failure | None:
    """The failure that the CLI's last lines of prose are about; None when they are about nothing known."""
    known = next((words for words in reversed(said) if code_of(words) != _UNKNOWN), None)
    return failure_of(known.removeprefix("Error: ")) if known is not None else None


def usage_of(line: Mapping[str, Any]) -> tuple[facts.Fact, ...]:
    """The tokens of the turn, where the line has them. `inputTokens` leave out what the cache gave or took."""
    told = mapping(line.get("usage"))
    usage = facts.Usage(
        input_tokens=whole(told.get("inputTokens")),
        output_tokens=whole(told.get("outputTokens")),
        cached_tokens=optional_whole(told.get("cacheReadTokens")),
        cache_creation_tokens=optional_whole(told.get("cacheWriteTokens")),
        of_one_call=False,
    )
    return (usage,) if told else ()
