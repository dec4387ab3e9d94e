"""Failures of a provider in the form of one API: HTTP errors by status, and answers that end early."""

from collections.abc import Mapping
from typing import Any, Literal

from agent_mux_testing.live.kit import ModelApi
from agent_mux_testing.model_server import HttpError, ScriptStep

__all__ = ["EARLY_ENDS", "STATUSES", "EarlyEnd", "early_end", "provider_error"]

_STATUSES: Mapping[int, tuple[str, str, str, str]] = {
    400: ("invalid_request_error", "invalid_request_error", "INVALID_ARGUMENT", "The request has an invalid value."),
    401: ("authentication_error", "invalid_api_key", "UNAUTHENTICATED", "The API key is invalid."),
    402: ("billing_error", "insufficient_credits", "FAILED_PRECONDITION", "The account has insufficient credits."),
    403: ("permission_error", "permission_denied", "PERMISSION_DENIED", "The account has no access to this model."),
    404: ("not_found_error", "model_not_found", "NOT_FOUND", "The model does not exist."),
    408: ("timeout_error", "request_timeout", "DEADLINE_EXCEEDED", "The request timed out."),
    413: ("request_too_large", "request_too_large", "INVALID_ARGUMENT", "The request exceeds the maximum size."),
    429: ("rate_limit_error", "rate_limit_exceeded", "RESOURCE_EXHAUSTED", "Rate limit reached for requests."),
    500: ("api_error", "server_error", "INTERNAL", "The server had an error."),
    502: ("api_error", "bad_gateway", "UNAVAILABLE", "Bad gateway."),
    503: ("api_error", "service_unavailable", "UNAVAILABLE", "The service is unavailable."),
    504: ("timeout_error", "gateway_timeout", "DEADLINE_EXCEEDED", "The gateway timed out."),
    529: ("overloaded_error", "overloaded", "UNAVAILABLE", "Overloaded."),
}
"""By HTTP status: the type of Anthropic, the code of OpenAI, the status of Google, and the message."""
STATUSES = tuple(_STATUSES)
_TEMPORARY = frozenset({408, 429, 500, 502, 503, 504, 529})
EarlyEnd = Literal["length", "filtered"]
"""Why an answer ends early: the token limit, or the provider's content filter."""
EARLY_ENDS: tuple[EarlyEnd, ...] = ("length", "filtered")
_STOP_REASONS: Mapping[ModelApi, Mapping[EarlyEnd, Mapping[str, Any]]] = {
    "messages": {"length": {"stop_reason": "max_tokens"}, "filtered": {"stop_reason": "refusal"}},
    "chat": {"length": {"stop_reason": "length"}, "filtered": {"stop_reason": "content_filter"}},
    "generate": {"length": {"stop_reason": "MAX_TOKENS"}, "filtered": {"stop_reason": "SAFETY"}},
    "responses": {
        "length": {"incomplete": {"reason": "max_output_tokens"}},
        "filtered": {"incomplete": {"reason": "content_filter"}},
    },
}


def provider_error(api: ModelApi, status: int, *, repeat: bool | int = True) -> ScriptStep:
    """Return a step with this HTTP error; clients that repeat temporary ones wait for no longer than a second."""
    anthropic, openai, google, message = _STATUSES[status]
    body: dict[str, Any]
    match api:
        case "messages":
            body = {"type": "error", "error": {"type": anthropic, "message": message}}
        case "generate":
            body = {"error": {"code": status, "message": message, "status": google}}
        case "chat" | "responses":
            kind = "server_error" if status >= 500 else "invalid_request_error"  # server errors are 5xx
            body = {"error": {"message": message, "type": kind, "code": openai}}
    headers = {"retry-after": "1"} if status in _TEMPORARY else {}
    return ScriptStep(error=HttpError(status, body, headers), repeat=repeat)


def early_end(api: ModelApi, end: EarlyEnd) -> Mapping[str, Any]:
    """Return the fields of `ScriptStep` for an answer that ends early."""
    return _STOP_REASONS[api][end]
