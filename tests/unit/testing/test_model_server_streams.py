"""Binary event streams, read by the client library of AWS."""

import pytest
from botocore.eventstream import EventStreamBuffer

from agent_mux_testing.model_server.bedrock import stream
from agent_mux_testing.model_server.script import ScriptStep, ScriptText, ScriptThinking, ToolUse, say
from agent_mux_testing.model_server.streams import BinaryEvent, Ids


def read(data: bytes) -> list[tuple[str, bytes]]:
    buffer = EventStreamBuffer()
    buffer.add_data(data)
    messages = list(buffer)
    return [(one.headers[f":{one.headers[':message-type']}-type"], one.payload) for one in messages]


@pytest.mark.parametrize("data", [{}, {"text": "äöü"}, {"long": "x" * 70_000}])
def test_a_message_is_read_by_botocore(data: dict[str, str]) -> None:
    ((name, payload),) = read(BinaryEvent("contentBlockDelta", data).encode())
    assert name == "contentBlockDelta"
    assert BinaryEvent(name, data).encode().count(payload) == 1


def test_an_exception_is_read_by_botocore() -> None:
    encoded = BinaryEvent("throttlingException", {"message": "slow"}, is_exception=True).encode()
    assert read(encoded) == [("throttlingException", b'{"message": "slow"}')]


def test_a_step_is_a_stream_of_converse_events() -> None:
    step = ScriptStep(blocks=(ScriptThinking("hm"), ScriptText("hi"), ToolUse("echo", {"a": 1})), pieces=1)
    names = [name for name, _ in read(b"".join(event.encode() for event in stream(step, "m", Ids())))]
    block = ["contentBlockDelta", "contentBlockStop"]
    assert names == [
        "messageStart",
        *["contentBlockDelta", *block],
        *block,
        *["contentBlockStart", *block],
        "messageStop",
        "metadata",
    ]


@pytest.mark.parametrize("cut", [{"drop": True}, {"hang": True}, {"garbage": "?"}])
def test_a_step_that_is_cut_ends_in_its_last_block(cut: dict[str, object]) -> None:
    step = ScriptStep(blocks=say("hi").blocks, pieces=1, **cut)
    assert [event.name for event in stream(step, "m", Ids())] == ["messageStart", "contentBlockDelta"]
