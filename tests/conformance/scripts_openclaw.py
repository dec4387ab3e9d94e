"""OpenClaw's scripts are content blocks; its results are the updates that end a tool call in ACP.

Texts end without blanks: the ACP bridge trims them. A call through the catalog of tools is shown as the call it makes.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from tests.conformance.content_blocks import block_parts
from tests.conformance.native_output import acp_ends, acp_texts
from tests.conformance.script_comparison import Dialect, TranscriptPart

from agent_mux.events import AgentEvent, McpToolCallStartEvent, ToolCallReadyEvent
from agent_mux_testing.fixtures import Fixture

CATALOG_TOOL = "tool_call"


def parts(step: Mapping[str, Any]) -> Iterator[TranscriptPart]:
    for part in block_parts(step):
        yield replace(part, content=part.content.rstrip()) if part.kind == "text" else part


def call(event: AgentEvent) -> TranscriptPart | None:
    match event:
        case ToolCallReadyEvent():
            return TranscriptPart("call", (event.tool_name, event.input))
        case McpToolCallStartEvent():
            return TranscriptPart(
                "call", (CATALOG_TOOL, {"id": f"{event.server}__{event.tool_name}", "args": event.input})
            )
    return None


DIALECT = Dialect(parts=parts, call=call)


def native_results(fixture: Fixture) -> dict[str, str]:
    """Return call id -> the result that the bridge printed, without calls that only wrap another call."""
    found = {update["toolCallId"]: acp_texts(update) for update in acp_ends(fixture)}
    makers = {call_id.split(":")[1] for call_id in found if call_id.startswith("tool_search_code:")}
    return {call_id: shown for call_id, shown in found.items() if call_id not in makers}
