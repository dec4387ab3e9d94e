"""Validation of model answers: messages that can be stored and sent back, and values that match an output schema."""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any

import msgspec
from msgspec.structs import replace

from agent_loop.errors import ContentFilteredError, InvalidArgumentsError, ModelAbortedError, ProviderError, error_text
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
"""Tool name in the history for a call without a name."""
MAX_TOOL_NAME_CHARACTERS = 64
"""Length of a tool name that all providers accept."""

DEFINITION_KEYS = ("$defs", "definitions")
"""Keys of a schema to which its references point; they must remain at the root."""
TYPELESS_KEYWORDS = frozenset({"anyOf", "oneOf", "allOf", "$ref", "enum", "const"})
"""Keywords by which a schema without `type` may allow values other than objects."""


def check_storable(answer: object, provider: str) -> ModelResponse:
    """Return the answer if a session that contains it can be stored and loaded. Raises `ProviderError` otherwise."""
    if not isinstance(answer, ModelResponse):
        raise ProviderError(
            f"the model call returned {type(answer).__name__} instead of a ModelResponse", provider=provider
        )
    try:
        _DECODER.decode(encode_json((tuple(answer.messages), answer.usage)))
    except Exception as error:
        raise ProviderError(f"the answer cannot be stored: {error_text(error)}", provider=provider) from error
    return answer


def normalize_response(response: ModelResponse, known_ids: set[str], new_id: Callable[[], str]) -> ModelResponse:
    """Return the answer with unique call ids, valid tool names and no empty messages.

    `known_ids` are the call ids of the history; new ids are added to it. Raises `ProviderError` if the answer reports
    an error.
    """
    for message in response.messages:
        _raise_if_failed(message)
    messages = [message for message in response.messages if has_content(message)]
    # Results must follow their calls: if calls precede the last message, merge all messages.
    merged = [reduce(_join_messages, messages)] if any(message.tool_calls for message in messages[:-1]) else messages
    return ModelResponse(tuple(_with_valid_calls(message, known_ids, new_id) for message in merged), response.usage)


def with_timestamps(response: ModelResponse, now_ms: int) -> ModelResponse:
    """Return the answer with `now_ms` as timestamp of each message that has none."""
    messages = tuple(
        message if message.timestamp else replace(message, timestamp=now_ms) for message in response.messages
    )
    return ModelResponse(messages, response.usage)


def cut_call(response: ModelResponse) -> str | None:
    """Return the id of the call whose arguments the output limit cut off, None if it cut none."""
    last = response.messages[-1].content[-1] if response.messages and response.messages[-1].content else None
    if response.stop_reason != "length" or not isinstance(last, ToolCall):
        return None
    return last.id if last.is_unparsable or not (last.raw_arguments or last.arguments) else None


def _raise_if_failed(message: AssistantMessage) -> None:
    if message.stop_reason == "aborted":
        raise ModelAbortedError(message.error or "the provider interrupted the answer", provider=message.provider)
    if message.stop_reason == "filtered":
        raise ContentFilteredError(message.error or "the provider blocked the answer", provider=message.provider)
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
    # The native form contains the old ids and names, which the results would not match.
    return replace(message, content=tuple(content), native=None)


def _with_valid_name(call: ToolCall, known: set[str], new_id: Callable[[], str]) -> ToolCall:
    """Return the call itself if its id and name can be sent back, else a corrected copy."""
    call_id = f"call_{new_id()}" if not call.id or call.id in known else call.id
    name = _INVALID_CHARACTERS.sub("_", call.name)[:MAX_TOOL_NAME_CHARACTERS] or UNNAMED_TOOL
    known.add(call_id)
    return call if (call_id, name) == (call.id, call.name) else replace(call, id=call_id, name=name)


def describes_object(schema: Mapping[str, Any]) -> bool:
    """Return whether every value that matches the schema is an object."""
    return schema["type"] == "object" if "type" in schema else not TYPELESS_KEYWORDS & schema.keys()


def wrap_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema of tool arguments that contains this schema."""
    if describes_object(schema):
        return dict(schema)
    roots = {key: schema[key] for key in DEFINITION_KEYS if key in schema}
    value = {key: each for key, each in schema.items() if key not in roots}
    return {"type": "object", "properties": {"value": value}, "required": ["value"], **roots}


def unwrap_value(schema: Mapping[str, Any], arguments: Mapping[str, Any]) -> Any:
    """Return the value in the arguments of the output tool."""
    return dict(arguments) if describes_object(schema) else arguments.get("value")


def validate_output(schema: Mapping[str, Any], value: Any) -> Any:
    """Return the value, coerced at its top level where necessary.

    Raises `InvalidArgumentsError` if it does not match, at any depth, and `ConfigurationError` if the schema has an
    unresolvable reference.
    """
    candidate = value if describes_object(schema) else {"value": value}
    if not isinstance(candidate, Mapping):
        raise InvalidArgumentsError(f"the answer must be an object, not {type_of(candidate)}")
    output = unwrap_value(schema, validate_arguments(wrap_schema(schema), candidate).arguments)
    problem = misfit(schema, output)
    if problem is not None:
        raise InvalidArgumentsError(problem)
    return output
