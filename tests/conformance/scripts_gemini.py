"""Gemini's scripts are content blocks; its results are `tool_result` lines, over ACP the ends of calls.

Thinking is not compared, because stream-json does not contain it. ACP contains no inputs, only the title, change and
location of a call; these must agree with the script.
"""

from collections.abc import Iterator, Mapping
from pathlib import PurePath
from typing import Any

from tests.conformance.content_blocks import block_parts, named_call
from tests.conformance.native_output import ENDED, acp_texts, acp_update, native_lines
from tests.conformance.script_comparison import Dialect, TranscriptPart, is_within

from agent_mux.events import AgentEvent, SubagentSpawnEvent
from agent_mux_testing.fixtures import Fixture


def parts(step: Mapping[str, Any]) -> Iterator[TranscriptPart]:
    return (part for part in block_parts(step) if part.kind != "thinking")


def call(event: AgentEvent) -> TranscriptPart | None:
    if isinstance(event, SubagentSpawnEvent):
        return TranscriptPart("call", ("invoke_agent", {"agent_name": event.agent_name, "prompt": event.prompt}))
    return named_call(event, mcp="mcp_{server}_{tool}", delegate="invoke_agent")


def same_reported_call(expected: Any, actual: Any) -> bool:
    name, given = expected
    if name != actual[0]:
        return False
    reported = {key: value for key, value in actual[1].items() if key != "title"}
    return is_within(given, actual[1]) or all(_same_value(key, given.get(key), reported[key]) for key in reported)


def _same_value(key: str, expected: Any, actual: Any) -> bool:
    if key == "file_path" and isinstance(expected, str):
        return PurePath("/home/dev/project", expected) == PurePath("/home/dev/project", actual)
    return bool(expected == actual)


DIALECT = Dialect(parts=parts, call=call, same_call=same_reported_call)


def native_results(fixture: Fixture) -> dict[str, str]:
    """Return call id -> its error or output; empty for commands, whose output the CLI wraps in a report."""
    found = {}
    for native in native_lines(fixture):
        update = acp_update(native)
        if native.get("type") == "tool_result":
            text = native.get("error", {}).get("message") or native.get("output", "")
            found[native["tool_id"]] = "" if text.startswith(("Output: ", "Command: ")) else text
        elif update.get("status") in ENDED:
            shown = acp_texts(update)
            found[update["toolCallId"]] = "" if "Process Group PGID" in shown else shown
    return found
