"""Cursor's scripts are content blocks, like Claude's; its results are in `tool_call/completed` lines."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from tests.conformance.content_blocks import block_parts, named_call
from tests.conformance.native_output import native_lines
from tests.conformance.script_comparison import Dialect

from agent_mux_testing.fixtures import Fixture

DIALECT = Dialect(parts=block_parts, call=partial(named_call, delegate="task"))


def native_results(fixture: Fixture) -> dict[str, str]:
    """Return call id -> its result, empty when that is not one text."""
    calls = [native for native in native_lines(fixture) if native.get("type") == "tool_call"]
    ended = [call for call in calls if call["subtype"] == "completed"]
    return {call["call_id"]: _text(next(iter(call["tool_call"].values()))) for call in ended}


def _text(tool: Mapping[str, Any]) -> str:
    [body] = [value for value in tool["result"].values() if isinstance(value, dict)]
    fields = ("interleavedOutput", "content", "message", "reason", "error")
    shown = next((body[field] for field in fields if body.get(field)), "")
    if isinstance(shown, str):
        return shown
    return "\n".join(part["text"]["text"] for part in shown) if all("text" in part for part in shown) else ""
