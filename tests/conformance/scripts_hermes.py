"""Hermes' scripts are content blocks; its results are in the ends of its calls.

Older scripts use common names of tools; those of `live_` and `acp_live_` use the names of Hermes.
"""

import re
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from tests.conformance.content_blocks import block_parts, named_call
from tests.conformance.native_output import ENDED, acp_texts, acp_update, native_lines
from tests.conformance.script_comparison import Dialect, TranscriptPart

from agent_mux.events import AgentEvent, InputRequiredEvent
from agent_mux_testing.fixtures import Fixture

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
"""The format of results over ACP, after a title."""
UNKNOWN = "no_such_tool"
"""Hermes does not report calls of unknown tools."""
NO_CALLS = frozenset({"delegate_task", "clarify"})
"""Delegations and questions, which have their own events."""


def call_parts(name: str, given: Any) -> Iterator[Any]:
    name = NAMES.get(name, name)
    match name, given or {}:
        case "clarify", {"question": question}:
            yield name, question
        case "delegate_task", {"tasks": list(tasks)}:
            yield from ((name, {"prompt": task["goal"]}) for task in tasks)
        case "delegate_task", {"goal": goal}:
            yield name, {"prompt": goal}
        case _, fields if name != UNKNOWN:
            yield name, {FIELDS.get(field, field): value for field, value in fields.items()}


def call(event: AgentEvent) -> TranscriptPart | None:
    if isinstance(event, InputRequiredEvent):
        return TranscriptPart("call", ("clarify", event.question))
    return named_call(event, delegate="delegate_task")


# The sub-agents of one call start in any order.
DIALECT = Dialect(parts=partial(block_parts, call_parts=call_parts), call=call, keeps_order=False)


def native_results(fixture: Fixture) -> dict[str, str]:
    """Return call id -> the result that the model received; empty where it is no text."""
    results: dict[str, str] = {}
    for native in native_lines(fixture):
        params, update = native.get("params", {}), acp_update(native)
        if params.get("type") == "tool.complete" and params["payload"]["name"] not in NO_CALLS:
            results[params["payload"]["tool_id"]] = _result(params["payload"])
        if update.get("status") in ENDED:
            results[update["toolCallId"]] = _shown(update)
    return results


def _result(ended: Mapping[str, Any]) -> str:
    result = ended.get("result")
    if not isinstance(result, dict):
        return str(result)
    content = result.get("error") or (result.get("output") if ended["name"] == "terminal" else "")
    return content if isinstance(content, str) else ""


def _shown(update: Mapping[str, Any]) -> str:
    shown = acp_texts(update)
    title, _, framed = shown.partition("\n")
    found = FRAME.fullmatch(framed) if title.endswith(" result") else None
    return found[1] if found is not None else shown.partition(" failed: ")[2]
