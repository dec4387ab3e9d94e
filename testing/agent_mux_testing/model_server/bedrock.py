"""Bedrock's ConverseStream: a step as a binary stream of events.

The functions are pure and use the same content blocks as `anthropic.py`; an `Opaque` part is the delta of a block of
its own. The stream of a step that is cut ends in the middle of its last block.
"""

import json
from collections.abc import Iterator
from typing import Any

from agent_mux_testing.model_server.script import (
    Block,
    Opaque,
    ScriptStep,
    ScriptText,
    ScriptThinking,
    ServerToolUse,
    ToolUse,
)
from agent_mux_testing.model_server.streams import BINARY_TYPE, BinaryEvent, Ids, in_pieces

CONTENT_TYPE = BINARY_TYPE
PARTS = "blocks"  # the field of a step that this API uses
USAGE = {
    "inputTokens": 100,
    "outputTokens": 12,
    "totalTokens": 162,
    "cacheReadInputTokens": 30,
    "cacheWriteInputTokens": 20,
}


def stream(step: ScriptStep, _model: str, ids: Ids) -> Iterator[BinaryEvent]:
    """Yield the events of a streamed answer, up to where it is cut. `sse_error` is an exception: its name and body."""
    yield BinaryEvent("messageStart", {"role": "assistant"})
    blocks = step.blocks or ()
    for index, block in enumerate(blocks):
        yield from _block_events(index, block, step.pieces, ids)
        if step.is_cut and index == len(blocks) - 1:
            return
        yield BinaryEvent("contentBlockStop", {"contentBlockIndex": index})
    if step.is_cut:
        return
    if step.sse_error is not None:
        ((name, body),) = step.sse_error.items()
        yield BinaryEvent(name, body, is_exception=True)
        return
    calls_tool = any(isinstance(block, ToolUse) for block in blocks)
    yield BinaryEvent("messageStop", {"stopReason": step.stop_reason or ("tool_use" if calls_tool else "end_turn")})
    yield BinaryEvent("metadata", {"usage": {**USAGE, **step.usage}, "metrics": {"latencyMs": 1}})


def _block_events(index: int, block: Block, pieces: int, ids: Ids) -> Iterator[BinaryEvent]:
    if isinstance(block, ToolUse):
        start = {"toolUse": {"toolUseId": block.id or ids.new("tooluse"), "name": block.name}}
        yield BinaryEvent("contentBlockStart", {"contentBlockIndex": index, "start": start})
    for delta in _deltas(block, pieces):
        yield BinaryEvent("contentBlockDelta", {"contentBlockIndex": index, "delta": delta})


def _deltas(block: Block, pieces: int) -> Iterator[dict[str, Any]]:
    match block:
        case ScriptText(text):
            yield from ({"text": piece} for piece in in_pieces(text, pieces))
        case ScriptThinking(thinking, signature):
            yield from ({"reasoningContent": {"text": piece}} for piece in in_pieces(thinking, pieces))
            yield {"reasoningContent": {"signature": signature}}
        case ToolUse(_, data, _, raw):
            text = json.dumps(data) if raw is None else raw
            yield from ({"toolUse": {"input": piece}} for piece in in_pieces(text, pieces))
        case Opaque(native):
            yield native
        case ServerToolUse():
            return  # this API has no server tools
