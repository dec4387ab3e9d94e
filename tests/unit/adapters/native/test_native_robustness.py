"""Any output of a program: each line yields a fact, nothing raises, and the events conform to the contract."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from agent_mux import validate
from agent_mux.assembler import Ending, StreamAssembler, StreamContext
from agent_mux.events.union import AgentEventType
from agent_mux.sdk.codec import STDOUT, CodecContext, Exit
from agent_mux.sdk.facts import Fact, Ignored, Note, Unknown
from agent_mux_adapters._dialects.agent_events import AgentEventsCodec

TYPES = sorted({str(value) for name, value in vars(AgentEventType).items() if name.isupper()} | {"response", "made_up"})
NAMES = (
    "toolCallId", "toolName", "input", "inputAccumulated", "delta", "text", "interactionId", "sessionId", "resumed",
    "turnIndex", "stepIndex", "stepType", "code", "message", "recoverable", "cost", "subagentId", "id", "accepted",
    "exitCode", "durationMs", "path", "byteCount", "output", "error", "priorTurns", "options", "paths",
)  # fmt: skip
VALUES = st.sampled_from(["", "a", "b", 0, 1, -1, 10**30, 1.5, None, True, False, [], {}, ["x", 3], {"totalUsd": -1}])
LINES = st.builds(
    lambda kind, fields: json.dumps({"type": kind, **fields}).encode(),
    st.sampled_from(TYPES),
    st.dictionaries(st.sampled_from(NAMES), VALUES, max_size=8),
)
JUNK = st.binary(max_size=20) | st.sampled_from([b"{", b"[]", b'{"type": 3}', b'{"type": "text_delta"', b"[" * 3000])
RUN = "01ARZ3NDEKTSV4RRFFQ69G5FAV"


@given(st.lists(LINES | JUNK, max_size=30), st.booleans())
def test_any_lines_make_a_conforming_stream(lines: list[bytes], live: bool) -> None:
    codec = AgentEventsCodec(CodecContext(agent="native", protocol="agent-events", prompt="hi" if live else None))
    assembler = StreamAssembler(StreamContext(run_id=RUN, agent="native", include_subagent_events=True))
    steps: list[Any] = list(codec.start())
    for line in lines:
        received = list(codec.receive(line, STDOUT))
        assert any(isinstance(step, Fact) for step in received), line
        steps += received
    steps += codec.finish(Exit(0))
    for step in steps:
        if isinstance(step, Fact) and not isinstance(step, Ignored):
            assembler.receive(step)
    assembler.end(Ending(code=0))
    assert validate(assembler.drain()) == []


def received(*lines: dict[str, Any]) -> list[Any]:
    codec = AgentEventsCodec(CodecContext(agent="native", protocol="agent-events"))
    return [step for line in lines for step in codec.receive(json.dumps(line).encode(), STDOUT)]


def test_unknown_type_is_reported() -> None:
    assert received({"type": "new"}) == [Unknown("new", '{"type": "new"}')]


def test_field_of_wrong_type_makes_the_line_unknown() -> None:
    assert received({"type": "text_delta", "delta": 3}) == [Unknown("text_delta", '{"type": "text_delta", "delta": 3}')]


def test_accumulated_text_of_wrong_type_makes_the_line_unknown() -> None:
    line = {"type": "tool_input_delta", "toolCallId": "t1", "delta": "x", "inputAccumulated": 0}
    assert received(line) == [Unknown("tool_input_delta", json.dumps(line))]


def test_order_violation_is_reported_once() -> None:
    repeated = received(*[{"type": "file_read", "path": "x"}] * 3)
    notes = [step.message for step in repeated if isinstance(step, Note)]
    assert notes == [
        "the program violates the order of events: file_read before session_start",
        "the program violates the order of events: file_read outside a turn",
    ]
