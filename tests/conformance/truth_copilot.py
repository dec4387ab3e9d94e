"""Copilot's scripts are content blocks, or output items; its results stand in the ends of calls.

Older scripts name the tools as all agents' scripts do; those of `hl_`, `js_` and some of `acp_` as Copilot does.
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

NAMES = {"shell": "bash", "write": "create", "read": "view", "ask": "ask_user", "sub": "task"}
FIELDS = {"content": "file_text", "old": "old_str", "new": "new_str"}
MADE_BY_CLI = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4.*")
"""The ids of calls that no model made: Copilot itself reads what a background command printed, when that ends."""


def parts(step: Mapping[str, Any]) -> Iterator[Said]:
    for part in (*(step.get("blocks") or ()), *(step.get("items") or ())):
        match part:
            case {"type": "text" | "message", "text": str(text)} if text:
                yield Said("text", text)
            case {"type": "thinking", "thinking": str(text)} | {"type": "reasoning", "text": str(text)} if text:
                yield Said("thought", text)
            case {"type": "tool_use" | "custom_tool_call", "name": name}:
                yield Said("call", _called(name, part.get("input") or {}))


def _called(name: str, given: Any) -> tuple[str, Any]:
    name = NAMES.get(name, name)
    if isinstance(given, dict):
        given = {FIELDS.get(field, field): value for field, value in given.items()}
        if name in ("task", "ask_user"):  # the event tells not all of it
            given = {field: value for field, value in given.items() if field in ("prompt", "question")}
    return name, given


def call(event: AgentEvent) -> Said | None:
    match event:
        case ToolCallReadyEvent() if not MADE_BY_CLI.fullmatch(event.tool_call_id):
            return Said("call", (event.tool_name, event.input))
        case McpToolCallStartEvent():
            return Said("call", (f"{event.server}-{event.tool_name}", event.input))
        case SubagentSpawnEvent():
            return Said("call", ("task", {"prompt": event.prompt}))
        case InputRequiredEvent():
            return Said("call", ("ask_user", {"question": event.question}))
    return None


def same_call(expected: Any, actual: Any) -> bool:
    return bool(expected[0] == actual[0]) and is_within(expected[1], actual[1])


DIALECT = Dialect(parts=parts, call=call, same_call=same_call, keeps_order=True)


def native_results(fixture: Fixture) -> dict[str, str]:
    """Call id -> what the model was told of it. The answers to questions are no results of calls."""
    results: dict[str, str] = {}
    questions: set[str] = set()
    for line in fixture.stdout_lines:
        message = _read(line)
        params = message.get("params") or {}
        event = params.get("event") or message
        update = params.get("update") or {}
        match event:
            case {"type": "user_input.requested", "data": {"toolCallId": call_id}}:
                questions.add(call_id)
            case {"type": "tool.execution_complete", "data": data} if not event.get("agentId"):
                results[data["toolCallId"]] = (data.get("result") or {}).get("content") or data["error"]["message"]
        if update.get("status") in ("completed", "failed"):
            told = update["rawOutput"]
            results[update["toolCallId"]] = told.get("content") or told["message"]
    return {call_id: text for call_id, text in results.items() if call_id not in questions}


def _read(line: bytes) -> dict[str, Any]:
    try:
        message = json.loads(line)
    except ValueError:
        return {}
    return message if isinstance(message, dict) else {}
