"""What a step comes to: blocks, fragments, errors. Pure."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from agent_loop.errors import (
    AuthenticationError,
    ContextExceededError,
    ModelAbortedError,
    NetworkError,
    ProviderError,
    RateLimitedError,
)
from agent_loop.messages import RAW_ARGUMENTS, AssistantMessage, Block, Text, Thinking, ToolCall
from agent_loop.providers.chunking import block_chunks, call_chunks, text_pieces
from agent_loop.providers.request import ModelRequest
from agent_loop.providers.response import Chunk, TextChunk
from agent_loop.providers.script import ScriptedCall, ScriptedError, Step

SCRIPTED = "scripted"
"""Id of the provider."""
OUTPUT_TOOL = "__output__"
"""The tool by which the loop asks for structured output. Source: zidane, "Schema"."""

ERRORS: Mapping[str, type[ProviderError]] = {
    each.kind: each
    for each in (ProviderError, ContextExceededError, AuthenticationError, NetworkError, ModelAbortedError)
}


def output_call(step: Step, request: ModelRequest) -> tuple[ScriptedCall, ...]:
    """The structured answer as a call of the tool that the request offers for it, where it does."""
    if step.output is None or request.output_schema is not None:
        return ()
    names = {tool.name for tool in request.tools}
    wanted = next((name for name in (request.tool_choice, OUTPUT_TOOL) if name in names), None)
    return () if wanted is None else (ScriptedCall(name=wanted, arguments=step.output),)


def text_of(step: Step, request: ModelRequest) -> str:
    """What the step says: its structured answer, where no tool takes it."""
    if step.output is not None and not output_call(step, request):
        return msgspec.json.encode(step.output).decode()
    return "".join(step.chunks) or step.text


def tool_call(call: ScriptedCall, call_id: str) -> ToolCall:
    """The call, with its arguments parsed as far as they can be."""
    raw = call.raw_arguments if call.raw_arguments is not None else "".join(call.fragments)
    return ToolCall(call_id, call.name, _parsed(raw) if raw else call.arguments, raw)


def _parsed(raw: str) -> dict[str, Any]:
    try:
        value = msgspec.json.decode(raw)
    except (msgspec.DecodeError, RecursionError):
        return {RAW_ARGUMENTS: raw}
    return value if isinstance(value, dict) else {RAW_ARGUMENTS: raw}


def highest_call(request: ModelRequest) -> int:
    """The highest number of an id of ours in the history: ids are unique also when a session goes on."""
    spoken = (message for message in request.messages if isinstance(message, AssistantMessage))
    ids = (call.id for message in spoken for call in message.tool_calls)
    return max((int(found[1]) for each in ids if (found := re.fullmatch(r"call_(\d{1,9})", each))), default=0)


def chunks_of(step: Step, text: str, calls: Sequence[ToolCall]) -> list[Chunk]:
    """All fragments of the answer, in order."""
    chunks: list[Chunk] = [*block_chunks(Thinking(step.thinking))]
    pieces = step.chunks if text == "".join(step.chunks) else text_pieces(text)
    chunks += map(TextChunk, pieces)
    fragments = [call.fragments for call in step.tool_calls] + [()] * (len(calls) - len(step.tool_calls))
    for call, given in zip(calls, fragments, strict=True):
        chunks += call_chunks(call, given)
    return chunks


def message_of(step: Step, text: str, calls: Sequence[ToolCall], model: str) -> AssistantMessage:
    """The whole answer."""
    thinking = (Thinking(step.thinking, step.signature),) if step.thinking else ()
    content: tuple[Block, ...] = (*thinking, *((Text(text),) if text else ()), *calls)
    reason = step.stop_reason or ("tool_use" if calls else "stop")
    return AssistantMessage(content=content, stop_reason=reason, model=model, provider=SCRIPTED, usage=step.usage)


def error_of(error: ScriptedError) -> ProviderError:
    """The error, of its kind."""
    if error.kind == "rate_limited":
        return RateLimitedError(error.message, provider=SCRIPTED, status=error.status, retry_after=error.retry_after)
    return ERRORS[error.kind](error.message, provider=SCRIPTED, status=error.status)
