"""The embedded agent's scripts are content blocks; its results are the ends of its calls."""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import msgspec
from tests.conformance.content_blocks import block_parts, named_call
from tests.conformance.native_output import native_lines
from tests.conformance.script_comparison import Dialect, TranscriptPart

from agent_mux_testing.fixtures import Fixture

OUTPUT = "__output__"
"""The tool that a model must call when its answer did not match the schema; its input is the answer."""


def call_parts(name: str, given: Mapping[str, Any]) -> Iterator[Any]:
    """Yield the call; the task of a delegation is the prompt of the sub-agent."""
    yield name, {"prompt": given["task"]} if name == "delegate" else given


def parts(step: Mapping[str, Any]) -> Iterator[TranscriptPart]:
    """Yield the visible parts of a step."""
    for part in block_parts(step, call_parts=call_parts):
        is_answer = part.kind == "call" and part.content[0] == OUTPUT
        yield TranscriptPart("text", msgspec.json.encode(part.content[1]).decode()) if is_answer else part


DIALECT = Dialect(parts=parts, call=partial(named_call, mcp="{server}__{tool}", delegate="delegate"))


def native_results(fixture: Fixture) -> dict[str, str]:
    """Return call id -> the result that the model received, for calls of the main agent."""
    found = {}
    for native in native_lines(fixture):
        if native["type"] in {"tool_result", "tool_error"} and "subagentId" not in native:
            result = native.get("error") or native.get("output")
            found[native["toolCallId"]] = result if isinstance(result, str) else ""
    return found
