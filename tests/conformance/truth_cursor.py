"""Cursor's scripts are content blocks, like Claude's; its results stand in `tool_call/completed` lines."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from tests.conformance.truth import Dialect, Said, is_within

from agent_mux.events import AgentEvent, McpToolCallStartEvent, SubagentSpawnEvent, ToolCallReadyEvent
from agent_mux.testing.fixtures import Fixture


def parts(step: Mapping[str, Any]) -> Iterator[Said]:
    for block in step.get("blocks") or ():
        match block:
            case {"type": "text", "text": str(text)} if text:
                yield Said("text", text)
            case {"type": "thinking", "thinking": str(thinking)} if thinking:
                yield Said("thought", thinking)
            case {"type": "tool_use", "name": name, "input": arguments}:
                yield Said("call", (name, arguments))


def call(event: AgentEvent) -> Said | None:
    match event:
        case ToolCallReadyEvent():
            return Said("call", (event.tool_name, event.input))
        case McpToolCallStartEvent():
            return Said("call", (f"mcp__{event.server}__{event.tool_name}", event.input))
        case SubagentSpawnEvent():
            return Said("call", ("task", {"prompt": event.prompt}))
    return None


def same_call(expected: Any, actual: Any) -> bool:
    return bool(expected[0] == actual[0]) and is_within(expected[1], actual[1])


DIALECT = Dialect(parts=parts, call=call, same_call=same_call, keeps_order=True)


def native_results(fixture: Fixture) -> dict[str, str]:
    """Call id -> what came of it, where that is one text."""
    lines = [json.loads(line) for line in fixture.stdout_lines if line.startswith(b'{"type":"tool_call"')]
    ended = [line for line in lines if line["subtype"] == "completed"]
    return {line["call_id"]: _text(next(iter(line["tool_call"].values()))) for line in ended}


def _text(tool: Mapping[str, Any]) -> str:
    [body] = [value for value in tool["result"].values() if isinstance(value, dict)]
    fields = ("interleavedOutput", "content", "message", "reason", "error")
    said = next((body[field] for field in fields if body.get(field)), "")
    if isinstance(said, str):
        return said
    return "\n".join(part["text"]["text"] for part in said) if all("text" in part for part in said) else ""
