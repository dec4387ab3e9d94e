"""OpenCode's scripts are content blocks; its results are tool parts, in all three protocols."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from tests.conformance.truth import Dialect, Said, is_within

from agent_mux.events import AgentEvent, McpToolCallStartEvent, SubagentSpawnEvent, ToolCallReadyEvent
from agent_mux.testing.fixtures import Fixture

NO_OUTPUT = "(no output)"


def parts(step: Mapping[str, Any]) -> Iterator[Said]:
    for block in step.get("blocks") or ():
        match block:
            case {"type": "text", "text": str(text)} if text:
                yield Said("text", text)
            case {"type": "thinking", "thinking": str(thinking)} if thinking:
                yield Said("thought", thinking)
            case {"type": "tool_use", "name": "task", "input": {"prompt": prompt}}:
                yield Said("call", ("task", {"prompt": prompt}))
            case {"type": "tool_use", "name": name}:
                yield Said("call", (name, block.get("input", {})))


def call(event: AgentEvent) -> Said | None:
    match event:
        case ToolCallReadyEvent():
            return Said("call", (event.tool_name, event.input))
        case McpToolCallStartEvent():
            return Said("call", (f"{event.server}_{event.tool_name}", event.input))
        case SubagentSpawnEvent():
            return Said("call", ("task", {"prompt": event.prompt}))
    return None


def same_call(expected: Any, actual: Any) -> bool:
    # The input of a call that is not valid is not told.
    return bool(expected[0] == actual[0]) and (actual[1] is None or is_within(expected[1], actual[1]))


DIALECT = Dialect(parts=parts, call=call, same_call=same_call, keeps_order=False)


def native_results(fixture: Fixture) -> dict[str, str]:
    """Call id -> what the CLI told the model, for the calls of the first session that shows."""
    natives = [json.loads(line) for line in fixture.stdout_lines if line.startswith(b"{")]
    if fixture.protocol == "acp":
        return dict(_of_acp(natives))
    told = [native.get("properties", native) for native in natives]
    main = next((each["sessionID"] for each in told if "sessionID" in each), None)
    shown = [each["part"] for each in told if each.get("sessionID") == main and "callID" in each.get("part", {})]
    return dict(_result(part) for part in shown if _has_ended(part) and part["tool"] != "task")


def _has_ended(part: Mapping[str, Any]) -> bool:
    return part["state"]["status"] in {"completed", "error"}


def _result(part: Mapping[str, Any]) -> tuple[str, str]:
    text = str(part["state"].get("output", part["state"].get("error", "")))
    return part["callID"], "" if text == NO_OUTPUT else text


def _of_acp(natives: list[Any]) -> Iterator[tuple[str, str]]:
    main = next((native["params"]["sessionId"] for native in natives if "params" in native), None)
    for native in natives:
        update = native.get("params", {}).get("update", {})
        is_ended = update.get("status") in {"completed", "failed"} and update.get("kind") != "read"
        if native.get("params", {}).get("sessionId") == main and is_ended:
            shown = [item["content"]["text"] for item in update.get("content", []) if item["type"] == "content"]
            yield update["toolCallId"], "\n".join(shown)
