"""OpenClaw's scripts are content blocks; its results are the updates that end a tool call in ACP.

Texts end without blanks: the ACP bridge trims them. A call through the catalog of tools is shown as the call it makes.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from tests.conformance.truth import Dialect, Said, is_within

from agent_mux.events import AgentEvent, McpToolCallStartEvent, ToolCallReadyEvent
from agent_mux.testing.fixtures import Fixture

CATALOG_TOOL = "tool_call"
ENDED = frozenset({"completed", "failed"})


def parts(step: Mapping[str, Any]) -> Iterator[Said]:
    for block in step.get("blocks") or ():
        match block:
            case {"type": "text", "text": str(text)} if text:
                yield Said("text", text.rstrip())
            case {"type": "thinking", "thinking": str(thinking)} if thinking:
                yield Said("thought", thinking)
            case {"type": "tool_use", "name": name}:
                yield Said("call", (name, block.get("input", {})))


def call(event: AgentEvent) -> Said | None:
    match event:
        case ToolCallReadyEvent():
            return Said("call", (event.tool_name, event.input))
        case McpToolCallStartEvent():
            return Said("call", (CATALOG_TOOL, {"id": f"{event.server}__{event.tool_name}", "args": event.input}))
    return None


def same_call(expected: Any, actual: Any) -> bool:
    return bool(expected[0] == actual[0]) and is_within(expected[1], actual[1])


DIALECT = Dialect(parts=parts, call=call, same_call=same_call, keeps_order=True)


def native_results(fixture: Fixture) -> dict[str, str]:
    """Call id -> what the bridge showed of its result; without the calls that only made another call."""
    found = {}
    for line in fixture.stdout_lines:
        update = _load(line).get("params", {}).get("update", {})
        if update.get("sessionUpdate") == "tool_call_update" and update.get("status") in ENDED:
            shown = [item["content"].get("text", "") for item in update.get("content", ())]
            found[update["toolCallId"]] = "\n".join(shown)
    makers = {call_id.split(":")[1] for call_id in found if call_id.startswith("tool_search_code:")}
    return {call_id: shown for call_id, shown in found.items() if call_id not in makers}


def _load(line: bytes) -> dict[str, Any]:
    try:
        native = json.loads(line)
    except ValueError:
        return {}
    return native if isinstance(native, dict) else {}
