"""Gemini's scripts are content blocks; its results are `tool_result` lines, over ACP the ends of calls.

Thoughts are left out: stream-json never shows them. ACP shows no inputs, only what can be told from a call's title, its
change and its place; what it does show has to be in the script.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import PurePath
from typing import Any

from tests.conformance.truth import Dialect, Said, is_within

from agent_mux.events import AgentEvent, McpToolCallStartEvent, SubagentSpawnEvent, ToolCallReadyEvent
from agent_mux.testing.fixtures import Fixture


def parts(step: Mapping[str, Any]) -> Iterator[Said]:
    for block in step.get("blocks") or ():
        match block:
            case {"type": "text", "text": str(text)} if text:
                yield Said("text", text)
            case {"type": "tool_use", "name": name}:
                yield Said("call", (name, block.get("input", {})))


def call(event: AgentEvent) -> Said | None:
    match event:
        case ToolCallReadyEvent():
            return Said("call", (event.tool_name, event.input))
        case McpToolCallStartEvent():
            return Said("call", (f"mcp_{event.server}_{event.tool_name}", event.input))
        case SubagentSpawnEvent():
            return Said("call", ("invoke_agent", {"agent_name": event.agent_name, "prompt": event.prompt}))
    return None


def same_call(expected: Any, actual: Any) -> bool:
    name, given = expected
    if name != actual[0]:
        return False
    told = {key: value for key, value in actual[1].items() if key != "title"}
    return is_within(given, actual[1]) or all(_same_value(key, given.get(key), told[key]) for key in told)


def _same_value(key: str, expected: Any, actual: Any) -> bool:
    if key == "file_path" and isinstance(expected, str):
        return PurePath("/home/dev/project", expected) == PurePath("/home/dev/project", actual)
    return bool(expected == actual)


DIALECT = Dialect(parts=parts, call=call, same_call=same_call, keeps_order=True)


def native_results(fixture: Fixture) -> dict[str, str]:
    """Call id -> what the CLI shows of its result: an error, or the output. Not for reports of commands."""
    found = {}
    for line in fixture.stdout_lines:
        native = _load(line)
        update = native.get("params", {}).get("update", {})
        if native.get("type") == "tool_result":
            text = native.get("error", {}).get("message") or native.get("output", "")
            found[native["tool_id"]] = "" if text.startswith("Output: ") else text
        elif update.get("status") in {"completed", "failed"}:
            shown = [item["content"]["text"] for item in update["content"] if item["type"] == "content"]
            found[update["toolCallId"]] = "" if "Process Group PGID" in "".join(shown) else "\n".join(shown)
    return found


def _load(line: bytes) -> dict[str, Any]:
    try:
        native = json.loads(line)
    except ValueError:
        return {}
    return native if isinstance(native, dict) else {}
