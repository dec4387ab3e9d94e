"""Any output of Copilot: nothing raises, nothing is dropped, and the events conform to the contract."""

import pytest
from copilot_transcript import NAMES, RECORDINGS, CopilotConversation, events_of, new_codec
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.adapters.damage import damaged, patient

from agent_mux.contract import validate
from agent_mux.sdk.codec import (
    AnswerAction,
    ApproveAction,
    Cancel,
    Close,
    DenyAction,
    Effect,
    Exit,
    Interrupt,
    Send,
    Source,
    Steer,
)
from agent_mux.sdk.facts import Fact

PROTOCOLS = ("acp", "headless", "json")
ACTIONS = (
    Send("x"), Steer("y"), Interrupt(), Close(), Cancel(), ApproveAction("r"), DenyAction("r", "no"),
    AnswerAction("question:0", "a"),
)  # fmt: skip


LINES = {protocol: RECORDINGS.lines(protocol) for protocol in PROTOCOLS}


@pytest.mark.parametrize("protocol", PROTOCOLS)
@patient
@given(data=st.data())
def test_a_line_with_a_strange_part(protocol: str, data: st.DataObject) -> None:
    codec = new_codec(protocol)
    for line in data.draw(st.lists(damaged(LINES[protocol]), min_size=3, max_size=3)):
        steps = list(codec.receive(line, Source.STDOUT))
        assert steps
        assert all(isinstance(step, Fact) for step in steps)
    list(codec.finish(Exit(code=1)))


@patient
@given(data=st.data())
def test_a_live_conversation_with_a_strange_runtime(data: st.DataObject) -> None:
    talk = CopilotConversation(interactive=True)
    for _ in range(8):
        if data.draw(st.booleans()):
            talk.request(data.draw(st.sampled_from(ACTIONS)))
        else:
            talk.receive(data.draw(damaged(LINES["headless"])))
    assert all(isinstance(step, Fact | Effect) for step in talk.steps)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@given(line=st.binary(max_size=40) | st.sampled_from([b"{", b"[]", b"null", b'{"type":5}', b'{"id":[]}', b"\xff\xfe"]))
def test_any_bytes_result_in_steps(protocol: str, line: bytes) -> None:
    codec = new_codec(protocol)
    for source in (Source.STDOUT, Source.STDERR):
        assert list(codec.receive(line, source))


@pytest.mark.parametrize("name", NAMES)
def test_recordings_with_sub_agent_events_conform(name: str) -> None:
    assert validate(events_of(name, include_subagent_events=True)) == []


def test_a_long_nesting_is_no_recursion() -> None:
    deep = b'{"type":"assistant.message","data":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    for protocol in PROTOCOLS:
        assert list(new_codec(protocol).receive(deep, Source.STDOUT))
