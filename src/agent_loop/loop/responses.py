"""Making sure of an answer before it goes into the history: whatever the provider sent, it can be sent back.

Source: loop spec, section 2.2 (messages are kept as they came); and what real providers refuse.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any

import msgspec
from msgspec.structs import replace

from agent_loop.errors import InvalidArgumentsError, ModelAbortedError, ProviderError, error_text
from agent_loop.json_schema import misfit
from agent_loop.messages import AssistantMessage, Block, ToolCall
from agent_loop.messages.formatting import encode_json
from agent_loop.messages.validation import has_content
from agent_loop.providers import ModelResponse
from agent_loop.tools.coercion import type_of
from agent_loop.tools.validation import validate_arguments
from agent_loop.usage import Usage

_INVALID_CHARACTERS = re.compile(r"[^A-Za-z0-9_-]")
_DECODER = msgspec.json.Decoder(tuple[tuple[AssistantMessage, ...], Usage])
UNNAMED_TOOL = "nameless"
"""What a tool is called in the history that the model called by no name."""
MAX_TOOL_NAME_CHARACTERS = 64
"""Characters that all providers take in a tool's name."""


def check_storable(answer: object, provider: str) -> ModelResponse:
    """The answer, when a session that holds it can be stored and read again. Raises `ProviderError` for any other."""
    if not isinstance(answer, ModelResponse):
        raise ProviderError(f"the model call gave {type(answer).__name__}, which is no answer", provider=provider)
    try:
        _DECODER.decode(encode_json((tuple(answer.messages), answer.usage)))
    except Exception as error:
        raise ProviderError(f"the answer is none that can be stored: {error_text(error)}", provider=provider) from error
    return answer


def normalize_response(response: ModelResponse, known_ids: set[str], new_id: Callable[[], str]) -> ModelResponse:
    """The answer with an id of its own for each tool call, and without messages that say nothing.

    `known_ids` are those of the history; the new ones are added. Raises `ProviderError` where the answer is an error.
    """
    for message in response.messages:
        _raise_if_failed(message)
    messages = [message for message in response.messages if has_content(message)]
    # Calls must be answered before the model speaks again: where they are not in the last message, it is all one.
    merged = [reduce(_join_messages, messages)] if any(message.tool_calls for message in messages[:-1]) else messages
    return ModelResponse(tuple(_with_valid_calls(message, known_ids, new_id) for message in merged), response.usage)


def with_timestamps(response: ModelResponse, now_ms: int) -> ModelResponse:
    """The answer with the time at which it was whole, where nobody said another one."""
    messages = tuple(
        message if message.timestamp else replace(message, timestamp=now_ms) for message in response.messages
    )
    return ModelResponse(messages, response.usage)


def _raise_if_failed(message: AssistantMessage) -> None:
    if message.stop_reason == "aborted":
        raise ModelAbortedError(message.error or "the provider broke off the answer", provider=message.provider)
    if message.stop_reason == "error":
        raise ProviderError(message.error or "the provider ended the answer with an error", provider=message.provider)


def _join_messages(message: AssistantMessage, other: AssistantMessage) -> AssistantMessage:
    return replace(other, content=message.content + other.content, usage=message.usage + other.usage, native=None)


def _with_valid_calls(message: AssistantMessage, known: set[str], new_id: Callable[[], str]) -> AssistantMessage:
    content: Sequence[Block] = [
        _with_valid_name(block, known, new_id) if isinstance(block, ToolCall) else block for block in message.content
    ]
    if all(new is old for new, old in zip(content, message.content, strict=True)):
        return message
    # What the provider made holds the old names: sent back verbatim, its results would belong to nothing.
    return replace(message, content=tuple(content), native=None)


def _with_valid_name(call: ToolCall, known: set[str], new_id: Callable[[], str]) -> ToolCall:
    """The very call, where it can be sent back as it is."""
    call_id = f"call_{new_id()}" if not call.id or call.id in known else call.id
    name = _INVALID_CHARACTERS.sub("_", call.name)[:MAX_TOOL_NAME_CHARACTERS] or UNNAMED_TOOL
    known.add(call_id)
    return call if (call_id, name) == (call.id, call.name) else replace(call, id=call_id, name=name)


DEFINITION_KEYS = ("$defs", "definitions")
"""What references of a schema lead to: they begin at its root."""
TYPELESS_KEYWORDS = frozenset({"anyOf", "oneOf", "allOf", "$ref", "enum", "const"})
"""Without a type, these say what else a value may be."""


def describes_object(schema: Mapping[str, Any]) -> bool:
    """Whatever fits it is an object."""
    return schema["type"] == "object" if "type" in schema else not TYPELESS_KEYWORDS & schema.keys()


def wrap_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema as one of a tool's arguments."""
    if describes_object(schema):
        return dict(schema)
    roots = {key: schema[key] for key in DEFINITION_KEYS if key in schema}
    value = {key: each for key, each in schema.items() if key not in roots}
    return {"type": "object", "properties": {"value": value}, "required": ["value"], **roots}


def unwrap_value(schema: Mapping[str, Any], arguments: Mapping[str, Any]) -> Any:
    """The value in a tool's arguments."""
    return dict(arguments) if describes_object(schema) else arguments.get("value")


def validate_output(schema: Mapping[str, Any], value: Any) -> Any:
    """The value, coerced at its top level where that was necessary.

    Raises `InvalidArgumentsError` where it does not fit, at whatever depth, and `ConfigurationError` where the schema
    refers to what is not in it.
    """
    candidate = value if describes_object(schema) else {"value": value}
    if not isinstance(candidate, Mapping):
        raise InvalidArgumentsError(f"the answer must be an object, not {type_of(candidate)}")
    output = unwrap_value(schema, validate_arguments(wrap_schema(schema), candidate).arguments)
    problem = misfit(schema, output)
    if problem is not None:
        raise InvalidArgumentsError(problem)
    return output
