"""The Anthropic Messages API: a step as a stream of events, or as one message.

The functions are pure: the stream of a step that hangs or drops ends where it is cut; `server.py` does the rest.
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
from agent_mux_testing.model_server.streams import Ids, ServerEvent, in_pieces

PARTS = "blocks"  # the field of a step that this API uses
USAGE = {"input_tokens": 100, "cache_creation_input_tokens": 20, "cache_read_input_tokens": 30, "output_tokens": 12}
TOKEN_COUNT = 123  # the answer to count_tokens


def stream(step: ScriptStep, model: str, ids: Ids) -> Iterator[ServerEvent]:
    """Yield the events of a streamed answer, up to where it is cut."""
    message = _message(step, model, ids)
    opening = {**message, "content": [], "stop_reason": None, "usage": {**message["usage"], "output_tokens": 1}}
    yield _event("message_start", message=opening)
    yield _event("ping")
    blocks = _with_ids(step.blocks or (), ids)
    for index, block in enumerate(blocks):
        yield from _block_events(index, block, step.pieces)
        if index == len(blocks) - 1 and step.is_cut:
            return
        yield _event("content_block_stop", index=index)
    if step.is_cut:
        return
    if step.sse_error is not None:
        yield ServerEvent("error", step.sse_error)
        return
    delta = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    yield _event("message_delta", delta=delta, usage={**USAGE, **step.usage})
    yield _event("message_stop")


def reply(step: ScriptStep, model: str, ids: Ids) -> dict[str, Any]:
    """Return the answer to a request without `stream`."""
    blocks = _with_ids(step.blocks or (), ids)
    return {**_message(step, model, ids), "content": [_whole(block) for block in blocks]}


def _message(step: ScriptStep, model: str, ids: Ids) -> dict[str, Any]:
    calls_tool = any(isinstance(block, ToolUse) for block in step.blocks or ())
    return {
        "id": ids.new("msg"),
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [],
        "stop_reason": step.stop_reason or ("tool_use" if calls_tool else "end_turn"),
        "stop_sequence": None,
        "usage": {**USAGE, "service_tier": "standard", **step.usage},
    }


def _with_ids(blocks: tuple[Block, ...], ids: Ids) -> list[Block]:
    return [_with_id(block, ids) for block in blocks]


def _with_id(block: Block, ids: Ids) -> Block:
    match block:
        case ToolUse(name, data, "", raw):
            return ToolUse(name, data, ids.new("toolu"), raw)
        case ServerToolUse(name, data, ""):
            return ServerToolUse(name, data, ids.new("srvtoolu"))
    return block


def _block_events(index: int, block: Block, pieces: int) -> Iterator[ServerEvent]:
    yield _event("content_block_start", index=index, content_block=_empty(block))
    for delta in _deltas(block, pieces):
        yield _event("content_block_delta", index=index, delta=delta)


def _empty(block: Block) -> dict[str, Any]:
    """Return the block at the beginning of its stream."""
    match block:
        case ScriptText():
            return {"type": "text", "text": ""}
        case ScriptThinking():
            return {"type": "thinking", "thinking": "", "signature": ""}
        case ToolUse() | ServerToolUse():
            return {**_whole(block), "input": {}}
        case Opaque(native):
            return native


def _deltas(block: Block, pieces: int) -> Iterator[dict[str, Any]]:
    match block:
        case ScriptText(text):
            yield from ({"type": "text_delta", "text": piece} for piece in in_pieces(text, pieces))
        case ScriptThinking(thinking, signature):
            yield from ({"type": "thinking_delta", "thinking": piece} for piece in in_pieces(thinking, pieces))
            yield {"type": "signature_delta", "signature": signature}
        case ToolUse() | ServerToolUse():
            raw = block.raw_input if isinstance(block, ToolUse) else None
            text = json.dumps(block.input) if raw is None else raw
            yield from ({"type": "input_json_delta", "partial_json": piece} for piece in in_pieces(text, pieces))


def _whole(block: Block) -> dict[str, Any]:
    match block:
        case ScriptText(text):
            return {"type": "text", "text": text}
        case ScriptThinking(thinking, signature):
            return {"type": "thinking", "thinking": thinking, "signature": signature}
        case ToolUse():
            return {"type": "tool_use", "id": block.id, "name": block.name, "input": block.input}
        case ServerToolUse():
            return {"type": "server_tool_use", "id": block.id, "name": block.name, "input": block.input}
        case Opaque(native):
            return native


def _event(name: str, **data: Any) -> ServerEvent:
    return ServerEvent(name, {"type": name, **data})
