"""pi's scripts are content blocks; its results are the ends of tool executions."""

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
            case {"type": "tool_use", "name": "task", "input": {"task": prompt}}:
                yield Said("call", ("task", prompt))
            case {"type": "tool_use", "name": name}:
                yield Said("call", (name, _without_intent(block.get("input", {}))))


def _without_intent(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """omp asks the model to say what it intends, and takes that out."""
    return {key: value for key, value in given.items() if key != "i"}


def call(event: AgentEvent) -> Said | None:
    match event:
        case ToolCallReadyEvent():
            return Said("call", (event.tool_name, event.input))
        case McpToolCallStartEvent():
            return Said("call", (f"mcp__{event.server}_{event.tool_name}", event.input))
        case SubagentSpawnEvent():
            return Said("call", ("task", event.prompt))
    return None


def same_call(expected: Any, actual: Any) -> bool:
    return bool(expected[0] == actual[0]) and is_within(expected[1], actual[1])


DIALECT = Dialect(parts=parts, call=call, same_call=same_call, keeps_order=True)


def native_results(fixture: Fixture) -> dict[str, str]:
    """Call id -> what the CLI told the model, for the calls of the main agent."""
    found = {}
    for line in fixture.stdout_lines:
        native = json.loads(line) if line.startswith(b"{") else {}
        update = native.get("params", {}).get("update", {})
        if native.get("type") == "tool_execution_end":
            found[native["toolCallId"]] = _text(native["result"])
        elif update.get("sessionUpdate") == "tool_call_update" and update.get("status") in ("completed", "failed"):
            found[update["toolCallId"]] = _text(update["rawOutput"])
    return found


def _text(result: Mapping[str, Any]) -> str:
    return "\n".join(block["text"] for block in result["content"] if block["type"] == "text")
