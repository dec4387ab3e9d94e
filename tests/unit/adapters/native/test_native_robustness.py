"""Whatever a program prints: each line says something, nothing raises, and the events are lawful."""

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from agent_mux import validate
from agent_mux.adapter import STDOUT, CodecContext, Exit
from agent_mux.assembler import Ending, StreamAssembler, StreamContext
from agent_mux.events.types import AgentEventType
from agent_mux.facts import Fact, Ignored, Note, Unknown
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


@settings(max_examples=200, deadline=None)
@given(st.lists(LINES | JUNK, max_size=30), st.booleans())
def test_any_lines_make_a_lawful_run(lines: list[bytes], live: bool) -> None:
    codec = AgentEventsCodec(CodecContext(agent="native", protocol="agent-events", prompt="hi" if live else None))
    assembler = StreamAssembler(StreamContext(run_id=RUN, agent="native", include_subagent_events=True))
    steps: list[Any] = list(codec.start())
    for line in lines:
        told = list(codec.receive(line, STDOUT))
        assert any(isinstance(step, Fact) for step in told), line
        steps += told
    steps += codec.finish(Exit(0))
    for step in steps:
        if isinstance(step, Fact) and not isinstance(step, Ignored):
            assembler.tell(step)
    assembler.end(Ending(code=0))
    assert validate(assembler.take()) == []


def told(*lines: dict[str, Any]) -> list[Any]:
    codec = AgentEventsCodec(CodecContext(agent="native", protocol="agent-events"))
    return [step for line in lines for step in codec.receive(json.dumps(line).encode(), STDOUT)]


def test_an_unknown_type_is_unknown() -> None:
    assert told({"type": "new"}) == [Unknown("new", '{"type": "new"}')]


def test_a_field_of_another_type_makes_the_line_unknown() -> None:
    assert told({"type": "text_delta", "delta": 3}) == [Unknown("text_delta", '{"type": "text_delta", "delta": 3}')]


def test_a_text_so_far_of_another_type_makes_the_line_unknown() -> None:
    line = {"type": "tool_input_delta", "toolCallId": "t1", "delta": "x", "inputAccumulated": 0}
    assert told(line) == [Unknown("tool_input_delta", json.dumps(line))]


def test_a_breach_of_the_order_is_told_once() -> None:
    told_twice = told(*[{"type": "file_read", "path": "x"}] * 3)
    notes = [step.message for step in told_twice if isinstance(step, Note)]
    assert notes == [
        "the program violates the order of events: file_read before session_start",
        "the program violates the order of events: file_read outside a turn",
    ]
