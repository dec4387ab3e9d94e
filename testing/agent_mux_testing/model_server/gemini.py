"""The Gemini API (`streamGenerateContent`, `generateContent`): a step as a stream of responses, or as one.

The functions are pure and use the same content blocks as `anthropic.py`. The API sends a function call as a whole. The
stream of a step that hangs or drops ends after its last piece of text.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from agent_mux_testing.model_server.script import Block, Opaque, ScriptStep, ScriptText, ScriptThinking, ToolUse
from agent_mux_testing.model_server.streams import Ids, ServerEvent, in_pieces

PARTS = "blocks"  # the field of a step that this API uses
USAGE = {
    "promptTokenCount": 150,
    "candidatesTokenCount": 12,
    "thoughtsTokenCount": 5,
    "cachedContentTokenCount": 30,
    "totalTokenCount": 167,
}
TOKEN_COUNT = 123  # the answer to countTokens
_SIGNATURE = "ZmFrZS1zaWc="
_EXAMPLES: Mapping[str, Any] = {"array": [], "boolean": False, "integer": 10, "number": 10}


def stream(step: ScriptStep, model: str, ids: Ids) -> Iterator[ServerEvent]:
    """Yield the responses of a streamed answer, up to where it is cut."""
    head = {"modelVersion": model, "responseId": ids.new("response")}
    for block in step.blocks or ():
        for part in _parts(block, step.pieces):
            yield ServerEvent("", {**head, "candidates": [_candidate([part])]})
    if step.is_cut:
        return
    if step.sse_error is not None:
        yield ServerEvent("", step.sse_error)
        return
    end = _candidate([{"text": ""}], step.stop_reason or "STOP")
    yield ServerEvent("", {**head, "candidates": [end], "usageMetadata": {**USAGE, **step.usage}})


def reply(step: ScriptStep, model: str, ids: Ids) -> dict[str, Any]:
    """Return the answer to a request without `stream`."""
    parts = [part for block in step.blocks or () for part in _parts(block, 1)]
    head = {"modelVersion": model, "responseId": ids.new("response")}
    candidate = _candidate(parts, step.stop_reason or "STOP")
    return {**head, "candidates": [candidate], "usageMetadata": {**USAGE, **step.usage}}


def schema_example(body: Any) -> ScriptStep | None:
    """Return an example answer for a request with a JSON schema; None for other requests."""
    config = body.get("generationConfig") if isinstance(body, Mapping) else None
    if not isinstance(config, Mapping) or config.get("responseMimeType") != "application/json":
        return None
    schema = config.get("responseJsonSchema") or config.get("responseSchema") or {}
    return ScriptStep(blocks=(ScriptText(json.dumps(_example(schema))),))


def _example(schema: Any) -> Any:
    if not isinstance(schema, Mapping):
        return "x"
    if schema.get("enum"):
        return schema["enum"][0]
    kind = str(schema.get("type", "")).lower()
    if kind == "object":
        return {name: _example(inner) for name, inner in (schema.get("properties") or {}).items()}
    return _EXAMPLES.get(kind, "x")


def _parts(block: Block, pieces: int) -> Iterator[dict[str, Any]]:
    match block:
        case ScriptText(text):
            yield from ({"text": piece} for piece in in_pieces(text, pieces))
        case ScriptThinking(thinking):
            yield from ({"text": piece, "thought": True} for piece in in_pieces(thinking, pieces))
        case ToolUse(name, data, call_id):
            call = {"name": name, "args": data, **({"id": call_id} if call_id else {})}
            yield {"functionCall": call, "thoughtSignature": _SIGNATURE}
        case Opaque(native):
            yield native


def _candidate(parts: list[dict[str, Any]], finish_reason: str | None = None) -> dict[str, Any]:
    ending = {"finishReason": finish_reason} if finish_reason else {}
    return {"content": {"role": "model", "parts": parts}, "index": 0, **ending}
