"""How a prompt or a request ended: closing facts, and failures from error responses.

ACP defines few error codes; most errors are recognized by an HTTP status or by phrases in the message.
"""

import re

from agent_mux.sdk import ErrorCode
from agent_mux.sdk.facts import Fact, Failure, TurnFailed, TurnLimitHit, TurnStopped
from agent_mux.sdk.native_json import load_object
from agent_mux_adapters._dialects.acp.quirks import AcpQuirks, PromptOutcome
from agent_mux_adapters._dialects.jsonrpc import RpcError
from agent_mux_adapters._dialects.network import network_code_of
from agent_mux_adapters._dialects.stop_reasons import answered
from agent_mux_adapters._dialects.tolerant import as_json, mapping, text


def closing_of(ended: PromptOutcome, quirks: AcpQuirks, *, max_turns: int | None) -> Fact:
    """Return the fact that closes the turn."""
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
        case "end_turn" | "max_tokens" | "refusal":
            return answered(reason, cost)
    message = f"{quirks.agent} stopped for an unknown reason: {reason or 'none'}"
    return TurnFailed(Failure("AGENT_CRASH", message), cost)


# -- failures

AUTH_REQUIRED = -32000
RESOURCE_NOT_FOUND = -32002
_CODES: dict[int, ErrorCode] = {
    AUTH_REQUIRED: "AUTH_ERROR",
    401: "AUTH_ERROR",
    403: "AUTH_ERROR",
    429: "RATE_LIMITED",
}
# Lower case; the first phrase that occurs decides.
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
    """Return the error code for a message.

    The code of the JSON-RPC error or HTTP response decides; otherwise the phrases in the message do.
    """
    if number in _CODES:
        return _CODES[number]
    lowered = message.lower()
    by_phrase = next((code for phrase, code in _PHRASES if phrase in lowered), None)
    status = _STATUS.search(message)
    return by_phrase or (_CODES[int(status[1])] if status is not None else network_code_of(message))


def failure_of(error: RpcError) -> Failure:
    """Return the failure of a prompt or of the handshake."""
    message = message_of(error)
    return Failure(code_of(message, error.code), message)


def session_failure_of(error: RpcError) -> Failure:
    """Return the failure of a request that should open a session."""
    message = message_of(error)
    lost = error.code == RESOURCE_NOT_FOUND or any(phrase in message.lower() for phrase in _NO_SESSION)
    return Failure("SESSION_NOT_FOUND", message) if lost else failure_of(error)


def message_of(error: RpcError) -> str:
    """Return the message of an error with its details, unwrapped from JSON where it is nested."""
    data, message = mapping(error.data), _unwrapped(error.message)
    details = next((text(data[key]) for key in ("details", "message", "error") if text(data.get(key))), "")
    if isinstance(error.data, str):
        details = error.data
    if error.data is not None and not details and message.rstrip(".").lower() == "internal error":
        details = as_json(error.data)
    return f"{message}: {details}" if details and details not in message else message


def _unwrapped(message: str) -> str:
    """Return the message inside `{"error": {"message": ...}}`, the form that providers use."""
    native = load_object(message.encode("utf-8", "replace")) if message.startswith("{") else None
    return text(mapping(mapping(native).get("error")).get("message")) or message
