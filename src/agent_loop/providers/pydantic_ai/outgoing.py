"""Conversion of our messages to pydantic-ai's.

Answers of the same provider are sent in their `native` form, with signatures and encrypted reasoning. Of other
providers' answers, text and tool calls are sent; reasoning is omitted, because no other provider can verify it, and as
text it would teach the model to write its reasoning into answers.
"""

import base64
import binascii
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from pydantic import ValidationError
from pydantic_ai.messages import (
    BinaryContent,
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    ModelResponsePart,
    SystemPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserContent,
    UserPromptPart,
)

from agent_loop.messages import (
    AssistantMessage,
    ExtensionMessage,
    Image,
    Message,
    Shown,
    SystemMessage,
    Text,
    ToolCall,
    ToolMessage,
    UserMessage,
)


def native_messages(messages: Sequence[Message], provider: str) -> list[ModelMessage]:
    """Return the conversation for this provider: alternating requests and responses."""
    sent: list[ModelMessage] = []
    for message in messages:
        match message:
            case AssistantMessage():
                response = _response(message, provider)
                if response.parts:
                    sent.append(response)
            case ExtensionMessage():
                continue
            case _:
                _add_to_request(sent, _request_part(message))
    return sent


def _add_to_request(sent: list[ModelMessage], part: ModelRequestPart) -> None:
    if sent and isinstance(sent[-1], ModelRequest):
        sent[-1] = replace(sent[-1], parts=[*sent[-1].parts, part])
    else:
        sent.append(ModelRequest(parts=[part]))


def _request_part(message: SystemMessage | UserMessage | ToolMessage) -> ModelRequestPart:
    match message:
        case SystemMessage(content=text):
            return SystemPromptPart(content=text)
        case UserMessage(content=content):
            return UserPromptPart(content=_shown(content))
        case ToolMessage():
            return _tool_return(message)


def _shown(content: tuple[Shown, ...]) -> str | list[UserContent]:
    if not content:
        return ""
    if len(content) == 1 and isinstance(content[0], Text):
        return content[0].text
    return [block.text if isinstance(block, Text) else _binary_content(block) for block in content]


def _tool_return(message: ToolMessage) -> ToolReturnPart:
    shown = _shown(message.content)
    return ToolReturnPart(
        tool_name=message.name,
        content=shown if isinstance(shown, str) else list(shown),
        tool_call_id=message.tool_call_id,
        outcome="failed" if message.is_error else "success",
    )


def _binary_content(image: Image) -> BinaryContent | str:
    try:
        data = base64.b64decode(image.data, validate=True)
    except binascii.Error:
        return "(an image that cannot be read)"
    return BinaryContent(data=data, media_type=image.mime_type)


def _response(message: AssistantMessage, provider: str) -> ModelResponse:
    native = _native(message.native) if message.provider == provider else None
    replayed = None if native is None else _with_our_ids(native, message.tool_calls)
    return replayed or ModelResponse(parts=list(_parts(message)), provider_name=message.provider or None)


def _native(data: Any) -> ModelResponse | None:
    """Return the stored form of an answer; None if it is invalid, because files can be edited."""
    if not isinstance(data, dict) or data.get("kind") != "response":
        return None
    try:
        (response,) = ModelMessagesTypeAdapter.validate_python([data])
    except ValidationError:
        return None
    return response if isinstance(response, ModelResponse) else None


def _with_our_ids(native: ModelResponse, calls: tuple[ToolCall, ...]) -> ModelResponse | None:
    """Return the answer with the loop's call ids; None if its calls are not those of the message."""
    native_calls = [part for part in native.parts if isinstance(part, ToolCallPart)]
    if [part.tool_name for part in native_calls] != [call.name for call in calls]:
        return None
    ids = iter(calls)
    return replace(native, parts=[_with_id(part, ids) for part in native.parts])


def _with_id(part: ModelResponsePart, calls: Iterable[ToolCall]) -> ModelResponsePart:
    if not isinstance(part, ToolCallPart):
        return part
    call = next(iter(calls))
    return part if part.tool_call_id == call.id else replace(part, tool_call_id=call.id)


def _parts(message: AssistantMessage) -> Iterable[ModelResponsePart]:
    for block in message.content:
        match block:
            case Text(text) if text:
                yield TextPart(content=text)
            case ToolCall():
                args: str | dict[str, Any] = block.raw_arguments or block.arguments
                yield ToolCallPart(tool_name=block.name, args=args, tool_call_id=block.id)
            case _:  # reasoning of another provider, and images, which providers reject in answers
                continue
