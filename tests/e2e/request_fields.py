"""What a model was asked, whichever API asked it: each has fields of its own for the same things."""

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
    """All that the model was told after what it said last: messages, and results of tools."""
    conversation = _conversation(body)
    own = [number for number, item in enumerate(conversation, start=1) if _is_of_model(item)]
    return str(conversation[own[-1] if own else 0 :])


def instructions(body: Mapping[str, Any]) -> str:
    """The system prompt. Where no field of its own holds it, it begins the conversation."""
    told = [body[field] for field in INSTRUCTIONS if body.get(field)]
    return str(told[0] if told else _conversation(body)[0])


def effort(body: Mapping[str, Any]) -> Any:
    """How hard the model is to think; None where that is not said."""
    return next((said for said in (_inside(body, path) for path in EFFORT) if said is not None), None)


def _is_of_model(item: Mapping[str, Any]) -> bool:
    return item.get("role") in {"assistant", "model"} or item.get("type") in {"function_call", "custom_tool_call"}


def _conversation(body: Mapping[str, Any]) -> Any:
    return next(body[field] for field in CONVERSATION if field in body)


def _inside(value: Any, path: tuple[str, ...]) -> Any:
    for field in path:
        value = value.get(field) if isinstance(value, dict) else None
    return value
