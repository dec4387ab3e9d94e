"""Old messages as a text that a model can summarize. Pure. Source: hooks seed, section 6.4.

A text and no conversation: what is in it is told about, and neither answered nor obeyed; it can go to any model, with
tools or without.
"""

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from agent_loop.messages import AssistantMessage, Message, ToolCall, ToolMessage, UserMessage
from agent_loop.middleware.evicting import evicted

EDITING_TOOLS = frozenset({"write_file", "edit", "multi_edit"})
MAX_EDIT_CHARACTERS = 2_000
"""Of each text that an editing tool was given: what it wrote is in the file."""
_TAG = re.compile(r"<(?=[\s/]*conversation)", re.IGNORECASE)


def transcript(messages: Sequence[Message], max_characters: int) -> str:
    """The messages in a tag that nothing in them can close; beginning and end, where they are longer."""
    parts = [part for message in messages for part in _parts(message)]
    text = _TAG.sub("&lt;", "\n\n".join(parts))
    half = max(max_characters // 2, 1)
    return f"<conversation>\n{evicted(text, max_characters, half)}\n</conversation>"


def _parts(message: Message) -> list[str]:
    match message:
        case UserMessage():
            return [f"[user]\n{message.text}"]
        case AssistantMessage():
            calls = [f"[call of {call.name}]\n{_arguments(call)}" for call in message.tool_calls]
            return [f"[assistant]\n{message.text}", *calls] if message.text else calls
        case ToolMessage(name=name, is_error=is_error):
            return [f"[{'error' if is_error else 'result'} of {name}]\n{message.text}"]
        case _:  # system messages stay as they are; what is the application's own, no model sees
            return []


def _arguments(call: ToolCall) -> str:
    shortened = cut_edits(call)
    return shortened.raw_arguments or msgspec.json.encode(shortened.arguments, enc_hook=str).decode()


def cut_edits(call: ToolCall) -> ToolCall:
    """The call of an editing tool with long texts in its arguments cut; any other as it is."""
    if call.name not in EDITING_TOOLS:
        return call
    return msgspec.structs.replace(call, arguments=_cut(call.arguments), raw_arguments="")


def _cut(value: Any) -> Any:
    match value:
        case str() if len(value) > MAX_EDIT_CHARACTERS:
            left_out = len(value) - MAX_EDIT_CHARACTERS
            return f"{value[:MAX_EDIT_CHARACTERS]}... ({left_out} characters left out)"
        case dict():
            return {key: _cut(item) for key, item in value.items()}
        case list() | tuple():
            return [_cut(item) for item in value]
        case _:
            return value
