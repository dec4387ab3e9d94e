"""Answers of a model: parts in the form of one agent, and refusals of a provider in the form of one API."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from agent_mux_testing.live.kit import LiveKit, ModelApi
from agent_mux_testing.live.parts import SUBTASK, Delegate, Part, Say, Think
from agent_mux_testing.model_server import (
    HttpError,
    ScriptMessage,
    ScriptReasoning,
    ScriptStep,
    ScriptText,
    ScriptThinking,
)
from agent_mux_testing.model_server.script import Block, Item

__all__ = ["Refusal", "answer", "delegation", "refuse"]


def answer(kit: LiveKit, workspace: Path, *parts: Part, **fields: Any) -> ScriptStep:
    """Return one answer of the model, with further `fields` of `ScriptStep`.

    Raise `UnsupportedPart` when the agent has no tool for a part.
    """
    content: Any = tuple(_formatted(kit, part, workspace) for part in parts)
    return ScriptStep(items=content, **fields) if kit.api == "responses" else ScriptStep(blocks=content, **fields)


def _formatted(kit: LiveKit, part: Part, workspace: Path) -> Block | Item:
    # The API determines the form of text and thinking, the agent determines the form of tool calls.
    has_items = kit.api == "responses"
    match part:
        case Say(text):
            return ScriptMessage(text) if has_items else ScriptText(text)
        case Think(text):
            return ScriptReasoning(text) if has_items else ScriptThinking(text)
    return kit.format_tool_call(part, workspace)


def delegation(kit: LiveKit, workspace: Path, task: str, *inside: Part) -> tuple[ScriptStep, ...]:
    """Return the answers of a model that delegates a task: one for each part of the sub-agent, then the delegation."""
    subtask = tuple(answer(kit, workspace, part, first=SUBTASK) for part in inside)
    return (*subtask, answer(kit, workspace, Delegate(task)), *kit.after_delegation)


# -- refusals

Refusal = Literal["unauthorized", "rate_limited", "server_error", "refused", "context_exceeded"]
"""Agents retry after `rate_limited` and `server_error`, and not after `refused`."""

_STATUS: Mapping[Refusal, int] = {
    "unauthorized": 401, "rate_limited": 429, "server_error": 500, "refused": 403, "context_exceeded": 400,
}  # fmt: skip
_ANTHROPIC: Mapping[Refusal, tuple[str, str]] = {
    "unauthorized": ("authentication_error", "invalid x-api-key"),
    "rate_limited": ("rate_limit_error", "This request would exceed your account's rate limit."),
    "server_error": ("api_error", "Internal server error"),
    "refused": ("permission_error", "Your account does not have access."),
    "context_exceeded": ("invalid_request_error", "prompt is too long: 1000123 tokens > 1000000 maximum"),
}
_OPENAI: Mapping[Refusal, dict[str, str]] = {
    "unauthorized": {
        "message": "Incorrect API key provided.", "type": "invalid_request_error", "code": "invalid_api_key",
    },
    "rate_limited": {"message": "Rate limit reached for requests", "type": "tokens", "code": "rate_limit_exceeded"},
    "server_error": {"message": "The server had an error", "type": "server_error", "code": "server_error"},
    "refused": {"message": "bad thing", "type": "invalid_request_error", "code": "bad"},
    "context_exceeded": {
        "message": "This model's maximum context length is 100000 tokens. However, your messages resulted in 999999"
        " tokens.",
        "type": "invalid_request_error",
        "code": "context_length_exceeded",
    },
}  # fmt: skip
_GEMINI: Mapping[Refusal, tuple[str, str]] = {
    "unauthorized": ("UNAUTHENTICATED", "Request had invalid authentication credentials."),
    "rate_limited": ("RESOURCE_EXHAUSTED", "Resource exhausted, try again."),
    "server_error": ("INTERNAL", "Internal error"),
    "refused": ("PERMISSION_DENIED", "Permission denied"),
    "context_exceeded": (
        "INVALID_ARGUMENT",
        "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
    ),
}
_TOO_LONG = {"code": "context_length_exceeded", "message": "Your input exceeds the context window of this model."}
_RETRY_SOON = {"retry-after": "1"}
_RETRY_INFO = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "1s"}


def refuse(api: ModelApi, refusal: Refusal, *, repeat: bool | int = 1) -> ScriptStep:
    """Return a step with this refusal; `repeat` as in `ScriptStep`."""
    if api == "responses" and refusal == "context_exceeded":
        return ScriptStep(items=(), failed=_TOO_LONG, repeat=repeat)
    status, body = _http_error(api, refusal)
    headers = _RETRY_SOON if refusal in ("rate_limited", "server_error") else {}
    return ScriptStep(error=HttpError(status, body, headers), repeat=repeat)


def _http_error(api: ModelApi, refusal: Refusal) -> tuple[int, dict[str, Any]]:
    status = _STATUS[refusal]
    match api:
        case "messages":
            kind, message = _ANTHROPIC[refusal]
            return status, {"type": "error", "error": {"type": kind, "message": message}}
        case "generate":
            kind, message = _GEMINI[refusal]
            details = {"details": [_RETRY_INFO]} if refusal == "rate_limited" else {}
            return status, {"error": {"code": status, "message": message, "status": kind, **details}}
        case "chat" | "responses":
            return 400 if refusal == "refused" else status, {"error": _OPENAI[refusal]}
