"""pi's scripts are content blocks; its results are the ends of tool executions."""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from tests.conformance.content_blocks import block_parts, named_call
from tests.conformance.native_output import ENDED, acp_update, native_lines
from tests.conformance.script_comparison import Dialect

from agent_mux_testing.fixtures import Fixture


def call_parts(name: str, given: Mapping[str, Any]) -> Iterator[Any]:
    """Yield the call without its intent, which omp asks the model for and removes."""
    is_delegating = name == "task" and "task" in given
    yield name, {"prompt": given["task"]} if is_delegating else {key: given[key] for key in given if key != "i"}


DIALECT = Dialect(
    parts=partial(block_parts, call_parts=call_parts),
    call=partial(named_call, delegate="task"),
)


def native_results(fixture: Fixture) -> dict[str, str]:
    """Return call id -> the result that the CLI gave to the model, for calls of the main agent."""
    found = {}
    for native in native_lines(fixture):
        update = acp_update(native)
        if native.get("type") == "tool_execution_end":
            found[native["toolCallId"]] = _text(native["result"])
        elif update.get("status") in ENDED:
            found[update["toolCallId"]] = _text(update["rawOutput"])
    return found


def _text(result: Mapping[str, Any]) -> str:
    return "\n".join(block["text"] for block in result["content"] if block["type"] == "text")
