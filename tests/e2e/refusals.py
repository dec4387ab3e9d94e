"""What a provider says when it does not answer, in the words of each API."""

from typing import Any, Literal

from agent_mux.testing.model_server import HttpError, Step

# `refused` is not tried again by the agent; `rate_limited` and `server_error` are.
Refusal = Literal["unauthorized", "rate_limited", "server_error", "refused", "context_exceeded"]

_ANTHROPIC: dict[Refusal, tuple[int, str, str]] = {
    "unauthorized": (401, "authentication_error", "invalid x-api-key"),
    "rate_limited": (429, "rate_limit_error", "This request would exceed your account's rate limit."),
    "server_error": (500, "api_error", "Internal server error"),
    "refused": (403, "permission_error", "Your account does not have access."),
    "context_exceeded": (400, "invalid_request_error", "prompt is too long: 1000123 tokens > 1000000 maximum"),
}
_OPENAI: dict[Refusal, tuple[int, dict[str, str]]] = {
    "unauthorized": (
        401,
        {"message": "Incorrect API key provided.", "type": "invalid_request_error", "code": "invalid_api_key"},
    ),
    "rate_limited": (
        429,
        {"message": "Rate limit reached for gpt-5.5", "type": "tokens", "code": "rate_limit_exceeded"},
    ),
    "server_error": (500, {"message": "The server had an error", "type": "server_error"}),
    "refused": (400, {"message": "bad thing", "type": "invalid_request_error", "code": "bad"}),
}
_TOO_LONG = {"code": "context_length_exceeded", "message": "Your input exceeds the context window of this model."}
_RETRY_SOON = {"retry-after": "1"}


def refuse(agent: str, refusal: Refusal, *, repeat: bool | int = 1) -> Step:
    """A step that refuses."""
    if agent == "codex" and refusal == "context_exceeded":
        return Step(items=(), failed=_TOO_LONG, repeat=repeat)
    status, body = _http(agent, refusal)
    headers = _RETRY_SOON if refusal == "rate_limited" else {}
    return Step(error=HttpError(status, body, headers), repeat=repeat)


def _http(agent: str, refusal: Refusal) -> tuple[int, dict[str, Any]]:
    if agent == "codex":
        status, error = _OPENAI[refusal]
        return status, {"error": error}
    status, kind, message = _ANTHROPIC[refusal]
    return status, {"type": "error", "error": {"type": kind, "message": message}}
