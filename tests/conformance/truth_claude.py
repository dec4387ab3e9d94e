"""Claude's scripts are content blocks; its results are `tool_result` blocks of `user` lines."""

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
            case {"type": "tool_use", "name": "Task", "input": {"prompt": prompt}}:
                yield Said("call", ("Task", {"prompt": prompt}))
            case {"type": "tool_use", "name": name}:
                # Input that is no JSON is shown as the CLI shows it.
                yield Said("call", (name, {} if "raw_input" in block else block.get("input", {})))


def call(event: AgentEvent) -> Said | None:
    match event:
        case ToolCallReadyEvent():
            return Said("call", (event.tool_name, event.input))
        case McpToolCallStartEvent():
            return Said("call", (f"mcp__{event.server}__{event.tool_name}", event.input))
        case SubagentSpawnEvent():
            return Said("call", ("Task", {"prompt": event.prompt}))
    return None


def same_call(expected: Any, actual: Any) -> bool:
    return bool(expected[0] == actual[0]) and is_within(expected[1], actual[1])


DIALECT = Dialect(parts=parts, call=call, same_call=same_call, keeps_order=True)


def native_results(fixture: Fixture) -> dict[str, str]:
    """Call id -> what the CLI told the model, for the calls of the main agent."""
    found = {}
    for line in fixture.stdout_lines:
        native = _load(line)
        content = native.get("message", {}).get("content") if native.get("type") == "user" else None
        if native.get("parent_tool_use_id") or not isinstance(content, list):
            continue
        found |= {block["tool_use_id"]: _text(block) for block in content if block.get("type") == "tool_result"}
    return found


def _text(block: Mapping[str, Any]) -> str:
    content = block.get("content", "")
    if isinstance(content, list):
        content = "\n".join(part.get("text", "") for part in content)
    return str(content).removeprefix("<tool_use_error>").removesuffix("</tool_use_error>")


def _load(line: bytes) -> dict[str, Any]:
    try:
        native = json.loads(line)
    except ValueError:
        return {}
    return native if isinstance(native, dict) else {}
