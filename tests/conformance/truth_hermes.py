"""Hermes' scripts are content blocks; its results stand in the ends of its calls.

Older scripts name the tools as all agents' scripts do; those of `live_` and `acp_live_` as Hermes does.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from tests.conformance.truth import Dialect, Said, is_within

from agent_mux.events import (
    AgentEvent,
    InputRequiredEvent,
    McpToolCallStartEvent,
    SubagentSpawnEvent,
    ToolCallReadyEvent,
)
from agent_mux.testing.fixtures import Fixture

NAMES = {
    "shell": "terminal",
    "write": "write_file",
    "read": "read_file",
    "edit": "patch",
    "ask": "clarify",
    "sub": "delegate_task",
}
FIELDS = {"old": "old_string", "new": "new_string"}
FRAME = re.compile(r"- \*\*(?:output|result):\*\* (.*?)(?:\n- \*\*exit_code:\*\* \d+)?", re.DOTALL)
"""How results look over ACP, under a title."""
UNKNOWN = "no_such_tool"
"""Hermes shows no call of a tool that it does not have."""
NO_CALLS = frozenset({"delegate_task", "clarify"})
"""Sub-agents and questions: told as such."""


def parts(step: Mapping[str, Any]) -> Iterator[Said]:
    for block in step.get("blocks") or ():
        match block:
            case {"type": "text", "text": str(text)} if text:
                yield Said("text", text)
            case {"type": "thinking", "thinking": str(thinking)} if thinking:
                yield Said("thought", thinking)
            case {"type": "tool_use", "name": name} if name != UNKNOWN:
                yield from _called(NAMES.get(name, name), block.get("input") or {})


def _called(name: str, given: Any) -> Iterator[Said]:
    match name, given:
        case "clarify", {"question": question}:
            yield Said("call", (name, question))
        case "delegate_task", {"tasks": list(tasks)}:
            yield from (Said("call", (name, task["goal"])) for task in tasks)
        case "delegate_task", {"goal": goal}:
            yield Said("call", (name, goal))
        case _:
            fields = {FIELDS.get(field, field): value for field, value in given.items()}
            yield Said("call", (name, fields))


def call(event: AgentEvent) -> Said | None:
    match event:
        case ToolCallReadyEvent():
            return Said("call", (event.tool_name, event.input))
        case McpToolCallStartEvent():
            return Said("call", (f"mcp__{event.server}__{event.tool_name}", event.input))
        case SubagentSpawnEvent():
            return Said("call", ("delegate_task", event.prompt))
        case InputRequiredEvent():
            return Said("call", ("clarify", event.question))
    return None


def same_call(expected: Any, actual: Any) -> bool:
    return bool(expected[0] == actual[0]) and is_within(expected[1], actual[1])


# The sub-agents of one call begin in any order.
DIALECT = Dialect(parts=parts, call=call, same_call=same_call, keeps_order=False)


def native_results(fixture: Fixture) -> dict[str, str]:
    """Call id -> what the model was told of it; empty where that is no text."""
    results: dict[str, str] = {}
    for line in fixture.stdout_lines:
        params = json.loads(line).get("params", {}) if line.startswith(b"{") else {}
        if params.get("type") == "tool.complete" and params["payload"]["name"] not in NO_CALLS:
            results[params["payload"]["tool_id"]] = _told(params["payload"])
        update = params.get("update", {})
        if update.get("sessionUpdate") == "tool_call_update" and update.get("status") in ("completed", "failed"):
            results[update["toolCallId"]] = _shown(update)
    return results


def _told(ended: Mapping[str, Any]) -> str:
    result = ended.get("result")
    if not isinstance(result, dict):
        return str(result)
    told = result.get("error") or (result.get("output") if ended["name"] == "terminal" else "")
    return told if isinstance(told, str) else ""


def _shown(update: Mapping[str, Any]) -> str:
    shown = "\n".join(item["content"]["text"] for item in update.get("content", ()) if item["type"] == "content")
    title, _, framed = shown.partition("\n")
    found = FRAME.fullmatch(framed) if title.endswith(" result") else None
    return found[1] if found is not None else shown.partition(" failed: ")[2]
