"""Copilot's scripts are content blocks, or output items; its results are in the ends of calls.

Older scripts name the tools as all agents' scripts do; those of `hl_`, `js_` and some of `acp_` as Copilot does.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from tests.conformance.content_blocks import named_call
from tests.conformance.native_output import ENDED, acp_update, native_lines
from tests.conformance.script_comparison import Dialect, TranscriptPart

from agent_mux.events import AgentEvent, InputRequiredEvent, ToolCallReadyEvent
from agent_mux_testing.fixtures import Fixture

NAMES = {"shell": "bash", "write": "create", "read": "view", "ask": "ask_user", "sub": "task"}
FIELDS = {"content": "file_text", "old": "old_str", "new": "new_str"}
MADE_BY_CLI = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4.*")
"""Ids of calls by Copilot itself, not by a model: it reads the output of a background command when that ends."""


def parts(step: Mapping[str, Any]) -> Iterator[TranscriptPart]:
    for part in (*(step.get("blocks") or ()), *(step.get("items") or ())):
        match part:
            case {"type": "text" | "message", "text": str(text)} if text:
                yield TranscriptPart("text", text)
            case {"type": "thinking", "thinking": str(text)} | {"type": "reasoning", "text": str(text)} if text:
                yield TranscriptPart("thinking", text)
            case {"type": "tool_use" | "custom_tool_call", "name": name}:
                yield TranscriptPart("call", _called(name, part.get("input") or {}))


def _called(name: str, given: Any) -> tuple[str, Any]:
    name = NAMES.get(name, name)
    if isinstance(given, dict):
        given = {FIELDS.get(field, field): value for field, value in given.items()}
        if name in ("task", "ask_user"):  # the event has only a part of the input
            given = {field: value for field, value in given.items() if field in ("prompt", "question")}
    return name, given


def call(event: AgentEvent) -> TranscriptPart | None:
    if isinstance(event, InputRequiredEvent):
        return TranscriptPart("call", ("ask_user", {"question": event.question}))
    if isinstance(event, ToolCallReadyEvent) and MADE_BY_CLI.fullmatch(event.tool_call_id):
        return None
    return named_call(event, mcp="{server}-{tool}", delegate="task")


DIALECT = Dialect(parts=parts, call=call)


def native_results(fixture: Fixture) -> dict[str, str]:
    """Return the text that the model got for each call by its id. Answers to questions are not results of calls."""
    results: dict[str, str] = {}
    questions: set[str] = set()
    for message in native_lines(fixture):
        event = (message.get("params") or {}).get("event") or message
        update = acp_update(message)
        match event:
            case {"type": "user_input.requested", "data": {"toolCallId": call_id}}:
                questions.add(call_id)
            case {"type": "tool.execution_complete", "data": data} if not event.get("agentId"):
                results[data["toolCallId"]] = (data.get("result") or {}).get("content") or data["error"]["message"]
        if update.get("status") in ENDED:
            raw_output = update["rawOutput"]
            results[update["toolCallId"]] = raw_output.get("content") or raw_output["message"]
    return {call_id: text for call_id, text in results.items() if call_id not in questions}
