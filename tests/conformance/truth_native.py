"""The embedded agent's scripts are content blocks; its results stand in the ends of its calls."""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import msgspec
from tests.conformance.content_blocks import block_parts, named_call
from tests.conformance.printed import natives
from tests.conformance.truth import Dialect, Said

from agent_mux.testing.fixtures import Fixture

OUTPUT = "__output__"
"""A model that is to answer by a schema, and did not, is made to call this tool: what it gives is the answer."""


def parts(step: Mapping[str, Any]) -> Iterator[Said]:
    """What a step says, as far as it is shown."""
    for said in block_parts(step):
        is_answer = said.kind == "call" and said.what[0] == OUTPUT
        yield Said("text", msgspec.json.encode(said.what[1]).decode()) if is_answer else said


DIALECT = Dialect(parts=parts, call=partial(named_call, delegate="delegate"))


def native_results(fixture: Fixture) -> dict[str, str]:
    """Call id -> what the model was told of it."""
    found = {}
    for native in natives(fixture):
        if native["type"] in {"tool_result", "tool_error"}:
            told = native.get("error") or native.get("output")
            found[native["toolCallId"]] = told if isinstance(told, str) else ""
    return found
