"""Fields of model requests, independent of the API: each API has its own names for them."""

from collections.abc import Mapping
from typing import Any

CONVERSATION = ("messages", "input", "contents")
INSTRUCTIONS = ("system", "instructions", "systemInstruction")
EFFORT = (
    ("output_config", "effort"),
    ("reasoning", "effort"),
    ("reasoning_effort",),
    ("generationConfig", "thinkingConfig", "thinkingLevel"),
)


def messages_after_last_answer(body: Mapping[str, Any]) -> str:
    """Return the part of the conversation after the model's last answer: messages and results of tools."""
    conversation = _conversation(body)
    answers = [number for number, item in enumerate(conversation, start=1) if _is_of_model(item)]
    return str(conversation[answers[-1] if answers else 0 :])


def instructions(body: Mapping[str, Any]) -> str:
    """Return the system prompt. Without its own field it is the first message of the conversation."""
    found = [body[field] for field in INSTRUCTIONS if body.get(field)]
    return str(found[0] if found else _conversation(body)[0])


def effort(body: Mapping[str, Any]) -> Any:
    """Return the requested thinking effort, or None when the request has none."""
    return next((value for value in (_inside(body, path) for path in EFFORT) if value is not None), None)


def _is_of_model(item: Mapping[str, Any]) -> bool:
    return item.get("role") in {"assistant", "model"} or item.get("type") in {"function_call", "custom_tool_call"}


def _conversation(body: Mapping[str, Any]) -> Any:
    return next(body[field] for field in CONVERSATION if field in body)


def _inside(value: Any, path: tuple[str, ...]) -> Any:
    for field in path:
        value = value.get(field) if isinstance(value, dict) else None
    return value
