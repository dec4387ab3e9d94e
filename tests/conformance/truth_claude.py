"""Claude's scripts are content blocks; its results are `tool_result` blocks of `user` lines."""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from tests.conformance.content_blocks import block_parts, named_call
from tests.conformance.printed import natives
from tests.conformance.truth import Dialect

from agent_mux_testing.fixtures import Fixture


def called(name: str, given: Any) -> Iterator[Any]:
    yield name, {"prompt": given["prompt"]} if name == "Task" and "prompt" in given else given


DIALECT = Dialect(parts=partial(block_parts, called=called), call=partial(named_call, delegate="Task"))


def native_results(fixture: Fixture) -> dict[str, str]:
    """Return what the CLI showed the model, by call id, for the calls of the main agent."""
    found: dict[str, str] = {}
    for native in natives(fixture):
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
