"""Claude's scripts are content blocks; its results are `tool_result` blocks of `user` lines."""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from tests.conformance.content_blocks import block_parts, named_call
from tests.conformance.native_output import native_lines
from tests.conformance.script_comparison import Dialect

from agent_mux_testing.fixtures import Fixture


def call_parts(name: str, given: Any) -> Iterator[Any]:
    yield name, {"prompt": given["prompt"]} if name == "Task" and "prompt" in given else given


DIALECT = Dialect(parts=partial(block_parts, call_parts=call_parts), call=partial(named_call, delegate="Task"))


def native_results(fixture: Fixture) -> dict[str, str]:
    """Return call id -> the result that the model received, for the calls of the main agent."""
    found: dict[str, str] = {}
    for native in native_lines(fixture):
        content = native.get("message", {}).get("content") if native.get("type") == "user" else None
        if native.get("parent_tool_use_id") or not isinstance(content, list):
            continue
        found |= {block["tool_use_id"]: _text(block) for block in content if block.get("type") == "tool_result"}
    return found


def _text(block: Mapping[str, Any]) -> str:
    content = block.get("content", "")
    if isinstance(content, list):
        content = "\n".join(part.get("text", "") for part in content)
    return str(content).removeprefix("<tool_use_error>").removesuffix("</tool_use_error>")
