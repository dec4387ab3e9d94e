"""How a turn ended and what it used: closing lines, failures by phrase or status, and exit codes."""

import re
from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from agent_mux.sdk import ErrorCode
from agent_mux.sdk.facts import Fact, Failure, TurnDone, TurnFailed, TurnLimitHit, TurnStopped, Usage
from agent_mux.sdk.native_json import load_object
from agent_mux_adapters._dialects.network import network_code_of
from agent_mux_adapters._dialects.tolerant import mapping, optional_whole, text, whole

TURN_LIMIT_ERROR = "FatalTurnLimitedError"
CANCELLED_ERROR = "FatalCancellationError"
LOOP = "Loop detected, stopping execution"
TOO_MANY_TURNS = "Maximum session turns exceeded"
ENDED_BY_NOTICE = frozenset({LOOP, TOO_MANY_TURNS})
"""Notices that end the turn although the CLI reports success afterwards."""


def closing_of(native: Mapping[str, Any], notice: str, max_turns: int | None) -> Fact:
    """Return the closing fact of a `result` line. `notice` is the `error` line before it, or empty."""
    error = mapping(native.get("error"))
    kind, message = text(error.get("type")), text(error.get("message"))
    if kind == TURN_LIMIT_ERROR or notice == TOO_MANY_TURNS:
        return TurnLimitHit(max_turns or 0)
    if kind == CANCELLED_ERROR:
        return TurnStopped()
    if native.get("status") == "success" and not notice:
        return TurnDone()
    return TurnFailed(failure_of(message or notice) if message or notice else _UNKNOWN_FAILURE)


def usage_of(stats: Mapping[str, Any]) -> Usage | None:
    """Return all tokens of the run, including calls for routing, titles and sub-agents; None before any call.

    `input_tokens` includes cached tokens, `input` does not. Thinking tokens are only part of the total: what is neither
    input nor output.
    """
    taken, given = whole(stats.get("input_tokens")), whole(stats.get("output_tokens"))
    total, cached = whole(stats.get("total_tokens")), whole(stats.get("cached"))
    if not taken and not given and not total:
        return None
    thought = max(total - taken - given, 0)
    return Usage(max(taken - cached, 0), given + thought, thought, cached, of_one_call=False)


_UNKNOWN_FAILURE = Failure("AGENT_CRASH", "gemini reported an unspecified error")


# -- failures

GUIDANCE = "set GEMINI_API_KEY, or run `gemini` and log in with /auth"
NO_ANSWER = "gemini ended the turn without an answer: the model's output was empty, malformed or blocked"
HTTP_EXIT_CODES: dict[int, ErrorCode] = {401 & 255: "AUTH_ERROR", 403 & 255: "AUTH_ERROR", 429 & 255: "RATE_LIMITED"}
"""The CLI exits with the HTTP status, of which an exit code keeps only the low eight bits."""
EXIT_CODES: dict[int, ErrorCode] = {
    41: "AUTH_ERROR",
    44: "CONFIG_ERROR",  # no sandbox
    52: "CONFIG_ERROR",
    55: "CONFIG_ERROR",  # the workspace is not trusted
    **HTTP_EXIT_CODES,
}
"""The CLI's own exit codes, and those that are HTTP statuses."""
BAD_REQUEST = 400 & 255
INPUT_ERROR = 42

_STATUSES: dict[int, ErrorCode] = {401: "AUTH_ERROR", 403: "AUTH_ERROR", 429: "RATE_LIMITED"}
# Lower case; the first phrase that occurs decides.
_PHRASES: tuple[tuple[str, ErrorCode], ...] = (
    ("exceeds the maximum number of tokens", "CONTEXT_EXCEEDED"),
    ("api key not valid", "AUTH_ERROR"),
    ("api_key_invalid", "AUTH_ERROR"),
    ("api key is missing", "AUTH_ERROR"),
    ("unauthenticated", "AUTH_ERROR"),
    ("invalid authentication credentials", "AUTH_ERROR"),
    ("authentication required", "AUTH_ERROR"),
    ("set an auth method", "AUTH_ERROR"),
    ("permission_denied", "AUTH_ERROR"),
    ("resource_exhausted", "RATE_LIMITED"),
    ("resource exhausted", "RATE_LIMITED"),
    ("exhausted your", "RATE_LIMITED"),  # "daily quota", "capacity"
    ("quota exceeded", "RATE_LIMITED"),
    ("exceeded your current quota", "RATE_LIMITED"),
    ("request a quota increase", "RATE_LIMITED"),  # the CLI's advice after a 429, whatever the provider's words
    ("possible quota limitations", "RATE_LIMITED"),
    ("too many requests", "RATE_LIMITED"),
    ("rate limit", "RATE_LIMITED"),
    ("returned an empty response", "EMPTY_ANSWER"),
)
_NO_SESSION = ("invalid session identifier", "no previous sessions found", "session not found")
_TOO_LONG = re.compile(r"input token count \((\d{1,12})\) exceeds the maximum number of tokens allowed \((\d{1,12})\)")
_WAIT = re.compile(r"retry (?:after|in) (\d{1,6}(?:\.\d{1,9})?)s")
_WRAPPER = re.compile(r"\[API Error: (.*)\](?:\n.*)?", re.DOTALL)


def failure_of(message: str, status: int | None = None) -> Failure:
    """Return the failure for a message. `status` is the HTTP status reported beside it, if any."""
    inner, inner_status = _unwrapped(message)
    code = _code_of(f"{message}\n{inner}".lower(), status or inner_status)
    if code == "AGENT_CRASH" and not (status or inner_status):
        code = network_code_of(inner)
    used = _TOO_LONG.search(inner) if code == "CONTEXT_EXCEEDED" else None
    wait = _WAIT.search(message.lower()) if code == "RATE_LIMITED" else None
    return Failure(
        code,
        inner,
        guidance=GUIDANCE if code == "AUTH_ERROR" else "",
        retry_after_ms=int(float(wait[1]) * 1000) if wait is not None else None,
        used_tokens=int(used[1]) if used is not None else 0,
        max_tokens=int(used[2]) if used is not None else 0,
    )


def failure_of_exit(code: int, message_text: str) -> Failure | None:
    """Return the failure for an exit without a closing message; None when the code is not known.

    `message_text` is the last message on stderr.
    """
    message, _ = _unwrapped(message_text)
    if code == BAD_REQUEST:
        return failure_of(message_text)
    if code == INPUT_ERROR and any(phrase in message_text.lower() for phrase in _NO_SESSION):
        return Failure("SESSION_NOT_FOUND", message)
    if code not in EXIT_CODES:
        return None
    known = EXIT_CODES[code]
    guidance = GUIDANCE if known == "AUTH_ERROR" else ""
    return Failure(known, message or f"gemini exited with code {code}", guidance=guidance)


def closing_by_exit(failure: Failure, code: int) -> TurnFailed | None:
    """Return the closing fact when the exit code explains a failure whose message does not; None otherwise."""
    known = HTTP_EXIT_CODES.get(code)
    if known is None or failure.code != "AGENT_CRASH":
        return None
    guidance = GUIDANCE if known == "AUTH_ERROR" else ""
    return TurnFailed(replace(failure, code=known, guidance=guidance))


def _code_of(lowered: str, status: int | None) -> ErrorCode:
    by_phrase = next((code for phrase, code in _PHRASES if phrase in lowered), None)
    return by_phrase or _STATUSES.get(status or 0, "AGENT_CRASH")


def _unwrapped(message: str) -> tuple[str, int | None]:
    """Return the message inside "[API Error: ...]" and the API's JSON, and the HTTP status there."""
    wrapper = _WRAPPER.fullmatch(message.strip())
    inner = wrapper[1] if wrapper is not None else message
    error: Any = mapping((load_object(inner.encode("utf-8", "replace")) or {}).get("error"))
    return text(error.get("message")) or inner.strip(), optional_whole(error.get("code"))
