"""OpenAI chat completions: a step as a stream of chunks, or as one completion.

The functions are pure and use the same content blocks as `anthropic.py`. Thinking is sent as `reasoning_content`, as by
providers that return it. The stream of a step that hangs or drops ends in the middle of its last block.
"""

import json
from collections.abc import Iterator
from typing import Any, TypeVar

from agent_mux_testing.model_server.script import (
    Block,
    Opaque,
    ScriptStep,
    ScriptText,
    ScriptThinking,
    ServerToolUse,
    ToolUse,
)
from agent_mux_testing.model_server.streams import Ids, ServerEvent, in_pieces

PARTS = "blocks"  # the field of a step that this API uses
USAGE = {
    "prompt_tokens": 150,
    "completion_tokens": 12,
    "total_tokens": 162,
    "prompt_tokens_details": {"cached_tokens": 30},
    "completion_tokens_details": {"reasoning_tokens": 5},
}
_Kind = TypeVar("_Kind", ScriptText, ScriptThinking, ToolUse)
CREATED_AT = 1_750_000_000  # fixed, so that it is equal in every run


def stream(step: ScriptStep, model: str, ids: Ids) -> Iterator[ServerEvent]:
    """Yield the chunks of a streamed answer, up to where it is cut."""
    head = {"id": ids.new("chatcmpl"), "object": "chat.completion.chunk", "created": CREATED_AT, "model": model}
    yield _chunk(head, {"role": "assistant", "content": ""})
    for delta in _deltas(step, ids):
        yield _chunk(head, delta)
    if step.is_cut:
        return
    if step.sse_error is not None:
        yield ServerEvent("", step.sse_error)
        return
    yield _chunk(head, {}, _finish_reason(step))
    yield ServerEvent("", {**head, "choices": [], "usage": {**USAGE, **step.usage}})
    yield ServerEvent("", "[DONE]")


def reply(step: ScriptStep, model: str, ids: Ids) -> dict[str, Any]:
    """Return the answer to a request without `stream`."""
    blocks = step.blocks or ()
    message: dict[str, Any] = {"role": "assistant", "content": "".join(block.text for block in _of(blocks, ScriptText))}
    thinking = "".join(block.thinking for block in _of(blocks, ScriptThinking))
    calls = [_call(block, ids) for block in _of(blocks, ToolUse)]
    message |= {"reasoning_content": thinking} if thinking else {}
    message |= {"tool_calls": calls} if calls else {}
    choice = {"index": 0, "message": message, "finish_reason": _finish_reason(step)}
    head = {"id": ids.new("chatcmpl"), "object": "chat.completion", "created": CREATED_AT, "model": model}
    return {**head, "choices": [choice], "usage": {**USAGE, **step.usage}}


def _deltas(step: ScriptStep, ids: Ids) -> Iterator[dict[str, Any]]:
    number = 0
    for block in step.blocks or ():
        match block:
            case ScriptText(text):
                yield from ({"content": piece} for piece in in_pieces(text, step.pieces))
            case ScriptThinking(thinking):
                yield from ({"reasoning_content": piece} for piece in in_pieces(thinking, step.pieces))
            case ToolUse():
                call = _call(block, ids)
                function = call["function"]
                beginning = {**call, "index": number, "function": {**function, "arguments": ""}}
                yield {"tool_calls": [beginning]}
                for piece in in_pieces(function["arguments"], step.pieces):
                    yield {"tool_calls": [{"index": number, "function": {"arguments": piece}}]}
                number += 1
            case Opaque(native):
                yield native
            case ServerToolUse():
                continue  # this API has no server tools


def _call(block: ToolUse, ids: Ids) -> dict[str, Any]:
    arguments = json.dumps(block.input) if block.raw_input is None else block.raw_input
    call_id = block.id or ids.new("call")
    return {"id": call_id, "type": "function", "function": {"name": block.name, "arguments": arguments}}


def _finish_reason(step: ScriptStep) -> str:
    return step.stop_reason or ("tool_calls" if any(_of(step.blocks or (), ToolUse)) else "stop")


def _chunk(head: dict[str, Any], delta: dict[str, Any], finish_reason: str | None = None) -> ServerEvent:
    return ServerEvent("", {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}]})


def _of(blocks: tuple[Block, ...], kind: type[_Kind]) -> list[_Kind]:
    return [block for block in blocks if isinstance(block, kind)]
