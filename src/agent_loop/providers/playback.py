"""Playback of scripts: selecting a step for a request, filling placeholders, building the answer."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from agent_loop.errors import (
    AuthenticationError,
    ContentFilteredError,
    ContextExceededError,
    EmptyAnswerError,
    ModelAbortedError,
    NetworkError,
    ProviderError,
    QuotaExceededError,
    RateLimitedError,
)
from agent_loop.messages import (
    RAW_ARGUMENTS,
    AssistantMessage,
    Block,
    Message,
    Text,
    Thinking,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from agent_loop.providers.chunking import block_chunks, call_chunks, text_pieces
from agent_loop.providers.provider import Chunk, ModelRequest, TextChunk
from agent_loop.providers.script import PLACEHOLDER, ScriptedCall, ScriptedError, Step

SCRIPTED = "scripted"
"""Id of the scripted provider."""
OUTPUT_TOOL = "__output__"
"""Tool by which the loop requests structured output."""
ERRORS: Mapping[str, type[ProviderError]] = {
    each.kind: each
    for each in (
        ProviderError,
        ContextExceededError,
        QuotaExceededError,
        AuthenticationError,
        NetworkError,
        ModelAbortedError,
        ContentFilteredError,
        EmptyAnswerError,
    )
}


class RequestExcerpt(msgspec.Struct, frozen=True):
    """The parts of a request that steps match and insert."""

    task: str
    """The first user message."""
    latest: str
    """User texts and tool results since the model's last answer, joined by newlines."""
    result: str
    """The last tool result; empty without one."""


def excerpt_of(messages: Sequence[Message]) -> RequestExcerpt:
    """Return the excerpt of these messages."""
    users = (message.text for message in messages if isinstance(message, UserMessage))
    results = (message.text for message in reversed(messages) if isinstance(message, ToolMessage))
    latest = "\n".join(message.text for message in since_last_answer(messages))
    return RequestExcerpt(next(users, ""), latest, next(results, ""))


def since_last_answer(messages: Sequence[Message]) -> list[UserMessage | ToolMessage]:
    """Return the user messages and tool results after the last assistant message."""
    answers = [at for at, message in enumerate(messages) if isinstance(message, AssistantMessage)]
    newer = messages[answers[-1] + 1 if answers else 0 :]
    return [message for message in newer if isinstance(message, UserMessage | ToolMessage)]


def is_match(step: Step, request: ModelRequest, excerpt: RequestExcerpt, last_step: str | None) -> bool:
    """Return whether the step's conditions match this request."""
    return (
        (step.after is None or step.after == last_step)
        and (step.purpose is None or step.purpose == request.purpose)
        and (step.task is None or step.task in excerpt.task)
        and (step.when is None or step.when in excerpt.latest)
        and (step.matches is None or re.search(step.matches, excerpt.latest) is not None)
    )


def fill_placeholders(step: Step, excerpt: RequestExcerpt) -> Step:
    """Return the step with its placeholders filled. Inserted text is untrusted and not expanded again."""
    if not step.templates:
        return step
    values = {"task": excerpt.task, "heard": excerpt.latest, "result": excerpt.result} | _groups(step, excerpt)
    answers = ("thinking", "text", "chunks", "tool_calls", "output", "error")
    return msgspec.structs.replace(step, **{name: _insert(getattr(step, name), values) for name in answers})


def _groups(step: Step, excerpt: RequestExcerpt) -> dict[str, str]:
    found = re.search(step.matches, excerpt.latest) if step.matches is not None else None
    if found is None:
        return {}
    numbered = {str(number): found.group(number) or "" for number in range((found.re.groups or 0) + 1)}
    return numbered | {name: text or "" for name, text in found.groupdict().items()}


def _insert(value: Any, values: Mapping[str, str]) -> Any:
    match value:
        case str():
            return PLACEHOLDER.sub(lambda found: values.get(found[1], found[0]), value)
        case dict():
            return {key: _insert(item, values) for key, item in value.items()}
        case list() | tuple():
            return type(value)(_insert(item, values) for item in value)
        case msgspec.Struct():
            fields = {name: _insert(getattr(value, name), values) for name in value.__struct_fields__}
            return msgspec.structs.replace(value, **fields)
        case _:
            return value


def output_call(step: Step, request: ModelRequest) -> tuple[ScriptedCall, ...]:
    """Return the structured answer as a call of the request's output tool, if it offers one."""
    if step.output is None or request.output_schema is not None:
        return ()
    names = {tool.name for tool in request.tools}
    wanted = next((name for name in (request.tool_choice, OUTPUT_TOOL) if name in names), None)
    arguments = step.output if isinstance(step.output, dict) else {"value": step.output}
    return () if wanted is None else (ScriptedCall(name=wanted, arguments=arguments),)


def text_of(step: Step, request: ModelRequest) -> str:
    """Return the text of the step, or its structured answer as JSON if no tool takes it."""
    if step.output is not None and not output_call(step, request):
        return msgspec.json.encode(step.output).decode()
    return "".join(step.chunks) or step.text


def tool_call(call: ScriptedCall, call_id: str) -> ToolCall:
    """Return the call with its arguments parsed, if they are JSON."""
    raw = call.raw_arguments if call.raw_arguments is not None else "".join(call.fragments)
    return ToolCall(call_id, call.name, _parse_arguments(raw) if raw else call.arguments, raw)


def _parse_arguments(raw: str) -> dict[str, Any]:
    try:
        value = msgspec.json.decode(raw)
    except (msgspec.DecodeError, RecursionError):
        return {RAW_ARGUMENTS: raw}
    return value if isinstance(value, dict) else {RAW_ARGUMENTS: raw}


def highest_call_number(request: ModelRequest) -> int:
    """Return the highest number of a generated call id in the history, so that new ids are unique."""
    answers = (message for message in request.messages if isinstance(message, AssistantMessage))
    ids = (call.id for message in answers for call in message.tool_calls)
    return max((int(found[1]) for each in ids if (found := re.fullmatch(r"call_(\d{1,9})", each))), default=0)


def chunks_of(step: Step, text: str, calls: Sequence[ToolCall]) -> list[Chunk]:
    """Return all chunks of the answer, in order."""
    chunks: list[Chunk] = [*block_chunks(Thinking(step.thinking))]
    pieces = step.chunks if text == "".join(step.chunks) else text_pieces(text)
    chunks += map(TextChunk, pieces)
    fragments = [call.fragments for call in step.tool_calls] + [()] * (len(calls) - len(step.tool_calls))
    for call, parts in zip(calls, fragments, strict=True):
        chunks += call_chunks(call, parts)
    return chunks


def message_of(step: Step, text: str, calls: Sequence[ToolCall], model: str) -> AssistantMessage:
    """Return the complete answer of a step."""
    thinking = (Thinking(step.thinking, step.signature),) if step.thinking else ()
    content: tuple[Block, ...] = (*thinking, *((Text(text),) if text else ()), *calls)
    reason = step.stop_reason or ("tool_use" if calls else "stop")
    return AssistantMessage(content=content, stop_reason=reason, model=model, provider=SCRIPTED, usage=step.usage)


def error_of(error: ScriptedError) -> ProviderError:
    """Return the exception for a scripted error."""
    if error.kind == "rate_limited":
        return RateLimitedError(error.message, provider=SCRIPTED, status=error.status, retry_after=error.retry_after)
    return ERRORS[error.kind](error.message, provider=SCRIPTED, status=error.status)
