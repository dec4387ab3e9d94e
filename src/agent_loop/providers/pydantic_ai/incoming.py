"""Conversion of pydantic-ai's answers to ours: chunks, messages and usage."""

import warnings
from collections.abc import Mapping
from typing import Any

import msgspec
from pydantic_ai.messages import (
    FilePart,
    FinishReason,
    ModelMessagesTypeAdapter,
    ModelResponse,
    ModelResponsePart,
    ModelResponseStreamEvent,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ThinkingPart,
    ThinkingPartDelta,
    ToolCallPart,
    ToolCallPartDelta,
)
from pydantic_ai.usage import RequestUsage

from agent_loop.messages import (
    RAW_ARGUMENTS,
    AssistantMessage,
    Block,
    Image,
    StopReason,
    Text,
    Thinking,
    ToolCall,
)
from agent_loop.providers.provider import Chunk, TextChunk, ThinkingChunk, ToolCallChunk
from agent_loop.usage import Usage

UNSENT = ("usage", "timestamp")  # omitted from `native`: never sent to a provider
STOP_REASONS: dict[FinishReason, StopReason] = {
    "stop": "stop",
    "length": "length",
    "content_filter": "filtered",
    "tool_call": "tool_use",
    "error": "error",
}


class Chunks:
    """Converts the stream events of one answer; maps the index of an argument fragment to its tool call."""

    def __init__(self) -> None:
        self._calls: dict[int, ToolCallPart] = {}

    def of(self, event: ModelResponseStreamEvent) -> Chunk | None:
        """Return the chunk of this event, or None."""
        match event:
            case PartStartEvent(part=TextPart(content=text)) | PartDeltaEvent(delta=TextPartDelta(content_delta=text)):
                return TextChunk(text) if text else None
            case (
                PartStartEvent(part=ThinkingPart(content=thought))
                | PartDeltaEvent(delta=ThinkingPartDelta(content_delta=thought))
            ):
                return ThinkingChunk(thought) if thought else None
            case PartStartEvent(index=index, part=ToolCallPart() as call):
                self._calls[index] = call
                return ToolCallChunk(call.tool_call_id, call.tool_name, _as_text(call.args))
            case PartDeltaEvent(index=index, delta=ToolCallPartDelta(args_delta=args)) if args and index in self._calls:
                call = self._calls[index]
                return ToolCallChunk(call.tool_call_id, call.tool_name, _as_text(args))
        return None


def assistant_message(response: ModelResponse, *, provider: str, model: str) -> AssistantMessage:
    """Return the answer as our message, with pydantic-ai's own form as `native`."""
    content = tuple(block for part in response.parts if (block := _block(part)) is not None)
    stop_reason = STOP_REASONS.get(response.finish_reason or "stop", "stop")
    if stop_reason == "stop" and any(isinstance(block, ToolCall) for block in content):
        stop_reason = "tool_use"
    return AssistantMessage(
        content=content,
        stop_reason=stop_reason,
        model=response.model_name or model,
        provider=provider,
        usage=usage_of(response),
        error=_answer_error(stop_reason),
        native=_native_form(response),
    )


def usage_of(response: ModelResponse) -> Usage:
    """Return the token counts in disjoint parts, and the cost if the price is known."""
    usage = response.usage
    cached = usage.cache_read_tokens + usage.cache_write_tokens
    return Usage(
        input_tokens=max(0, usage.input_tokens - cached),
        output_tokens=usage.output_tokens,
        cache_read_tokens=usage.cache_read_tokens,
        cache_write_tokens=usage.cache_write_tokens,
        thinking_tokens=_thinking_tokens(usage),
        cost_usd=_cost(response),
    )


def _thinking_tokens(usage: RequestUsage) -> int | None:
    for name in ("reasoning_tokens", "thoughts_tokens", "thinking_tokens"):
        if name in usage.details:
            return usage.details[name]
    return None


def _cost(response: ModelResponse) -> float | None:
    if not response.model_name or not response.usage.has_values():
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return float(response.cost().total_price)
        except (LookupError, ValueError):  # unknown model, or a price that depends on unknown factors
            return None


def _block(part: ModelResponsePart) -> Block | None:
    match part:
        case TextPart(content=text):
            return Text(text) if text else None
        case ThinkingPart():
            return _thinking(part)
        case ToolCallPart():
            raw = _as_text(part.args)
            return ToolCall(part.tool_call_id, part.tool_name, _arguments(raw), raw)
        case FilePart(content=content) if content.media_type.startswith("image/"):
            return Image(content.base64, content.media_type)
        case _:  # server-side tools (searches, files) remain in `native`
            return None


def _thinking(part: ThinkingPart) -> Thinking | None:
    if not part.content and part.signature is None:
        return None
    is_redacted = not part.content and part.id in {"redacted_thinking", "redacted_content"}
    return Thinking(
        text=part.content,
        signature=None if is_redacted else part.signature,
        redacted=part.signature if is_redacted else None,
    )


def _arguments(raw: str) -> dict[str, Any]:
    """Return the parsed arguments, or their text under one key if they are not a JSON object."""
    if not raw:
        return {}
    try:
        arguments = msgspec.json.decode(raw)
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
        return {RAW_ARGUMENTS: raw}
    return arguments if isinstance(arguments, dict) else {RAW_ARGUMENTS: raw}


def _as_text(args: str | Mapping[str, Any] | None) -> str:
    if args is None:
        return ""
    return args if isinstance(args, str) else msgspec.json.encode(args).decode()


def _answer_error(stop_reason: StopReason) -> str | None:
    if stop_reason == "filtered":
        return "the provider's content filter ended the answer"
    if stop_reason != "error":
        return None
    return "the provider ended the answer with an error"


def _native_form(response: ModelResponse) -> dict[str, Any]:
    (dumped,) = ModelMessagesTypeAdapter.dump_python([response], mode="json", exclude_none=True)
    return {name: value for name, value in dumped.items() if name not in UNSENT}
