"""The embedded agent's scripts are content blocks; its results stand in the ends of its calls."""

from functools import partial

from tests.conformance.content_blocks import block_parts, named_call
from tests.conformance.printed import natives
from tests.conformance.truth import Dialect

from agent_mux.testing.fixtures import Fixture

DIALECT = Dialect(parts=block_parts, call=partial(named_call, delegate="delegate"))


def native_results(fixture: Fixture) -> dict[str, str]:
    """Call id -> what the model was told of it."""
    found = {}
    for native in natives(fixture):
        if native["type"] in {"tool_result", "tool_error"}:
            told = native.get("error") or native.get("output")
            found[native["toolCallId"]] = told if isinstance(told, str) else ""
    return found
