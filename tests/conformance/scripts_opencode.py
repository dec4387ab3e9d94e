"""OpenCode's scripts are content blocks; its results are tool parts, in all three protocols."""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from tests.conformance.content_blocks import block_parts, named_call
from tests.conformance.native_output import ENDED, acp_texts, acp_update, native_lines
from tests.conformance.script_comparison import Dialect, same_call

from agent_mux_testing.fixtures import Fixture

NO_OUTPUT = "(no output)"


def call_parts(name: str, given: Any) -> Iterator[Any]:
    yield name, {"prompt": given["prompt"]} if name == "task" and "prompt" in given else given


def same_or_without_input(expected: Any, actual: Any) -> bool:
    """Compare two calls; OpenCode does not report invalid input."""
    return same_call(expected, actual) or bool(expected[0] == actual[0] and actual[1] is None)


DIALECT = Dialect(
    parts=partial(block_parts, call_parts=call_parts),
    call=partial(named_call, mcp="{server}_{tool}", delegate="task"),
    same_call=same_or_without_input,
    keeps_order=False,
)


def native_results(fixture: Fixture) -> dict[str, str]:
    """Return call id -> the result that the CLI gave to the model, for calls of the first session."""
    printed = list(native_lines(fixture))
    if fixture.protocol == "acp":
        return dict(_of_acp(printed))
    fields = [native.get("properties", native) for native in printed]
    main = next((each["sessionID"] for each in fields if "sessionID" in each), None)
    shown = [each["part"] for each in fields if each.get("sessionID") == main and "callID" in each.get("part", {})]
    return dict(_result(part) for part in shown if _has_ended(part) and part["tool"] != "task")


def _has_ended(part: Mapping[str, Any]) -> bool:
    return part["state"]["status"] in {"completed", "error"}


def _result(part: Mapping[str, Any]) -> tuple[str, str]:
    text = str(part["state"].get("output", part["state"].get("error", "")))
    return part["callID"], "" if text == NO_OUTPUT else text


def _of_acp(printed: list[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    main = next((native["params"]["sessionId"] for native in printed if "params" in native), None)
    for native in printed:
        update = acp_update(native)
        is_ended = update.get("status") in ENDED and update.get("kind") != "read"
        if is_ended and native["params"]["sessionId"] == main:
            yield update["toolCallId"], acp_texts(update)
