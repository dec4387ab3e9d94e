"""The OpenAI Responses API: a step as a stream of events, or as one response.

The functions are pure. A cut stream (`hang`, `drop`) ends in the middle of its last message; other items are always
complete, because clients ignore incomplete ones.
"""

import json
from collections.abc import Iterator
from typing import Any

from agent_mux_testing.model_server.script import (
    CustomToolCall,
    FunctionCall,
    Item,
    Opaque,
    ScriptMessage,
    ScriptReasoning,
    ScriptStep,
)
from agent_mux_testing.model_server.streams import Ids, ServerEvent, in_pieces

PARTS = "items"  # the field of a step that this API uses
USAGE = {
    "input_tokens": 100,
    "input_tokens_details": {"cached_tokens": 30},
    "output_tokens": 20,
    "output_tokens_details": {"reasoning_tokens": 5},
    "total_tokens": 120,
}
CREATED_AT = 1_750_000_000  # fixed, so that it is equal in every run


def stream(step: ScriptStep, model: str, ids: Ids) -> Iterator[ServerEvent]:
    """Yield the numbered events of a streamed answer, up to where it is cut."""
    for number, event in enumerate(_events(step, model, ids)):
        yield ServerEvent(event.name, {"type": event.name, "sequence_number": number, **event.data})


def reply(step: ScriptStep, model: str, ids: Ids) -> dict[str, Any]:
    """Return the answer to a request without `stream`."""
    output = [_whole(item, ids) for item in step.items or ()]
    return _ended(step, _response(model, ids), output).data["response"]  # type: ignore[no-any-return]


def _events(step: ScriptStep, model: str, ids: Ids) -> Iterator[ServerEvent]:
    response = _response(model, ids)
    yield _event("response.created", response=response)
    yield _event("response.in_progress", response=response)
    items = step.items or ()
    output = []
    for index, item in enumerate(items):
        whole = _whole(item, ids)
        output.append(whole)
        yield _event("response.output_item.added", output_index=index, item=_empty(item, whole))
        cut = index == len(items) - 1 and step.is_cut and isinstance(item, ScriptMessage)
        yield from _content(index, item, whole, step.pieces, cut=cut)
        if cut:
            return
        yield _event("response.output_item.done", output_index=index, item=whole)
    if not step.is_cut:
        yield _ended(step, response, output)


def _ended(step: ScriptStep, response: dict[str, Any], output: list[dict[str, Any]]) -> ServerEvent:
    if step.failed is not None:
        return _event("response.failed", response={**response, "status": "failed", "error": step.failed})
    if step.incomplete is not None:
        cut_short = {**response, "status": "incomplete", "incomplete_details": step.incomplete}
        return _event("response.incomplete", response=cut_short)
    usage = {**USAGE, **step.usage}
    return _event("response.completed", response={**response, "status": "completed", "output": output, "usage": usage})


def _response(model: str, ids: Ids) -> dict[str, Any]:
    return {
        "id": ids.new("resp"),
        "object": "response",
        "created_at": CREATED_AT,
        "model": model,
        "status": "in_progress",
        "output": [],
        "usage": None,
        "error": None,
    }


def _whole(item: Item, ids: Ids) -> dict[str, Any]:
    """Return the item as it is after its stream."""
    match item:
        case ScriptMessage(text, phase):
            content = [{"type": "output_text", "text": text, "annotations": []}]
            whole = {"id": ids.new("msg"), "type": "message", "role": "assistant", "status": "completed"}
            return {**whole, "content": content, **({"phase": phase} if phase else {})}
        case ScriptReasoning(text):
            summary = [{"type": "summary_text", "text": text}]
            return {"id": ids.new("rs"), "type": "reasoning", "summary": summary, "encrypted_content": "ZmFrZQ=="}
        case FunctionCall(name, arguments, namespace, _):
            text = arguments if isinstance(arguments, str) else json.dumps(arguments)
            extra = {"namespace": namespace} if namespace else {}
            return {**_call(item, name, ids), "arguments": text, **extra}
        case CustomToolCall(name, text, _):
            return {**_call(item, name, ids), "input": text}
        case Opaque(native):
            return {"id": ids.new("item"), **native}


def _call(item: FunctionCall | CustomToolCall, name: str, ids: Ids) -> dict[str, Any]:
    kind, prefix = ("function_call", "fc") if isinstance(item, FunctionCall) else ("custom_tool_call", "ctc")
    call_id = item.call_id or ids.new("call")
    return {"id": ids.new(prefix), "type": kind, "status": "completed", "call_id": call_id, "name": name}


def _empty(item: Item, whole: dict[str, Any]) -> dict[str, Any]:
    """Return the item at the beginning of its stream."""
    match item:
        case ScriptMessage():
            return {**whole, "status": "in_progress", "content": []}
        case ScriptReasoning():
            return {**whole, "summary": []}
        case FunctionCall():
            return {**whole, "status": "in_progress", "arguments": ""}
        case CustomToolCall():
            return {**whole, "status": "in_progress", "input": ""}
        case Opaque():
            return {**whole, "status": "in_progress"}


def _content(index: int, item: Item, whole: dict[str, Any], pieces: int, *, cut: bool) -> Iterator[ServerEvent]:
    """Yield the events between `added` and `done` of an item."""
    place = {"item_id": whole["id"], "output_index": index}
    match item:
        case ScriptMessage(text):
            part = whole["content"][0]
            place["content_index"] = 0
            yield _event("response.content_part.added", **place, part={**part, "text": ""})
            yield from _deltas("response.output_text", place, text, pieces)
            if not cut:
                yield _event("response.output_text.done", **place, text=text)
                yield _event("response.content_part.done", **place, part=part)
        case ScriptReasoning(text):
            place["summary_index"] = 0
            part = whole["summary"][0]
            yield _event("response.reasoning_summary_part.added", **place, part={**part, "text": ""})
            yield from _deltas("response.reasoning_summary_text", place, text, pieces)
            yield _event("response.reasoning_summary_text.done", **place, text=text)
            yield _event("response.reasoning_summary_part.done", **place, part=part)
        case FunctionCall():
            yield from _deltas("response.function_call_arguments", place, whole["arguments"], pieces)
            yield _event("response.function_call_arguments.done", **place, arguments=whole["arguments"])
        case CustomToolCall():
            yield from _deltas("response.custom_tool_call_input", place, whole["input"], pieces)
            yield _event("response.custom_tool_call_input.done", **place, input=whole["input"])


def _deltas(name: str, place: dict[str, Any], text: str, pieces: int) -> Iterator[ServerEvent]:
    for piece in in_pieces(text, pieces):
        yield _event(f"{name}.delta", **place, delta=piece)


def _event(name: str, **data: Any) -> ServerEvent:
    return ServerEvent(name, data)
