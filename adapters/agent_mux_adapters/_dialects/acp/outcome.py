"""How a prompt ended."""

import re

from agent_mux.errors import ErrorCode
from agent_mux.facts import Fact, Failure, TurnDone, TurnFailed, TurnLimitHit, TurnStopped
from agent_mux.native_json import load_object
from agent_mux_adapters._dialects.acp.quirks import AcpQuirks, PromptOutcome
from agent_mux_adapters._dialects.jsonrpc import RpcError
from agent_mux_adapters._dialects.tolerant import as_json, mapping, text

_FAILURES = {
    "max_tokens": "the model reached its token limit and the answer is cut off",
    "refusal": "the model refused to go on",
}


def closing_of(ended: PromptOutcome, quirks: AcpQuirks, *, max_turns: int | None) -> Fact:
    """The closing fact of a turn."""
    special = quirks.closing_fact(ended)
    if special is not None:
        return special
    reason, cost = ended.stop_reason, ended.cost
    match reason:
        case "cancelled":
            return TurnStopped(cost)
        case "max_turn_requests":
            return TurnLimitHit(max_turns or 0, cost)
        case _ if ended.failure is not None:
            return TurnFailed(ended.failure, cost)
        case "end_turn":
            return TurnDone(cost)
    why = _FAILURES.get(reason) or f"{quirks.agent} stopped for a reason that is not known: {reason or 'none'}"
    return TurnFailed(Failure("AGENT_CRASH", why), cost)


# TODO What an error of the agent means. ACP has codes for few things; the rest is said in HTTP statuses and prose.

AUTH_REQUIRED = -32000
RESOURCE_NOT_FOUND = -32002
_CODES: dict[int, ErrorCode] = {
    AUTH_REQUIRED: "AUTH_ERROR",
    401: "AUTH_ERROR",
    403: "AUTH_ERROR",
    429: "RATE_LIMITED",
}
# Lower case; the first that occurs decides.
_PHRASES: tuple[tuple[str, ErrorCode], ...] = (
    ("context_length_exceeded", "CONTEXT_EXCEEDED"),
    ("context length", "CONTEXT_EXCEEDED"),
    ("context window", "CONTEXT_EXCEEDED"),
    ("prompt is too long", "CONTEXT_EXCEEDED"),
    ("exceeds the maximum number of tokens", "CONTEXT_EXCEEDED"),
    ("rate limit", "RATE_LIMITED"),
    ("rate_limit", "RATE_LIMITED"),
    ("too many requests", "RATE_LIMITED"),
    ("resource_exhausted", "RATE_LIMITED"),
    ("insufficient_quota", "RATE_LIMITED"),
    ("quota", "RATE_LIMITED"),
    ("authentication", "AUTH_ERROR"),
    ("unauthenticated", "AUTH_ERROR"),
    ("unauthorized", "AUTH_ERROR"),
    ("invalid api key", "AUTH_ERROR"),
    ("incorrect api key", "AUTH_ERROR"),
    ("not logged in", "AUTH_ERROR"),
)
_STATUS = re.compile(r"(?<![\w.])(401|403|429)(?![\w.]*\d)")
_NO_SESSION = ("session not found", "no session", "unknown session", "session does not exist", "no previous sessions")


def code_of(message: str, number: int = 0) -> ErrorCode:
    """The error code for what an agent says: by ACP's or HTTP's number, else by its words."""
    if number in _CODES:
        return _CODES[number]
    words = message.lower()
    by_words = next((code for phrase, code in _PHRASES if phrase in words), None)
    status = _STATUS.search(message)
    return by_words or (_CODES[int(status[1])] if status is not None else "AGENT_CRASH")


def failure_of(error: RpcError) -> Failure:
    """A failed prompt, or a handshake that failed."""
    said = message_of(error)
    return Failure(code_of(said, error.code), said)


def session_failure_of(error: RpcError) -> Failure:
    """A session that could not be opened."""
    said = message_of(error)
    lost = error.code == RESOURCE_NOT_FOUND or any(phrase in said.lower() for phrase in _NO_SESSION)
    return Failure("SESSION_NOT_FOUND", said) if lost else failure_of(error)


def message_of(error: RpcError) -> str:
    """The message, with the details that some agents put beside it, and without the JSON that some put it into."""
    data, said = mapping(error.data), _unwrapped(error.message)
    details = next((text(data[key]) for key in ("details", "message", "error") if text(data.get(key))), "")
    if isinstance(error.data, str):
        details = error.data
    if error.data is not None and not details and said.rstrip(".").lower() == "internal error":
        details = as_json(error.data)
    return f"{said}: {details}" if details and details not in said else said


def _unwrapped(message: str) -> str:
    """The message inside of `{"error": {"message": ...}}`, as providers answer."""
    told = load_object(message.encode("utf-8", "replace")) if message.startswith("{") else None
    return text(mapping(mapping(told).get("error")).get("message")) or message
