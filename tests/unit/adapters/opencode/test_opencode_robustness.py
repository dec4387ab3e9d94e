"""Any output of OpenCode: nothing raises, no line is dropped, and deltas take the hot path."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opencode_transcript import ADAPTER, SESSION, OpencodeConversation, delta, message, new_codec, text_part
from tests.unit.adapters.codec_conversation import as_line
from tests.unit.adapters.damage import ANYTHING, check, damaged, patient
from tests.unit.adapters.recordings import Recordings

from agent_mux.sdk import facts
from agent_mux.sdk.codec import Exit, Source

RECORDINGS = Recordings(ADAPTER, "run-json")
LINES = {protocol: RECORDINGS.lines(protocol) for protocol in ADAPTER.protocols}


@pytest.mark.parametrize("protocol", ADAPTER.protocols)
@patient
@given(data=st.data())
def test_values_of_any_type_raise_nothing(protocol: str, data: st.DataObject) -> None:
    codec = new_codec(protocol)
    check(list(codec.receive(data.draw(damaged(LINES[protocol])), Source.STDOUT)))
    list(codec.finish(Exit(code=0)))


@patient
@given(answer=ANYTHING)
def test_responses_of_any_shape_raise_nothing(answer: Any) -> None:
    talk = OpencodeConversation()
    talk.connects()
    for request_id in (1, 2, 3):
        assert talk.receive(json.dumps({"id": request_id, "status": 200, "body": answer}).encode())


@patient
@given(status=ANYTHING, request_id=ANYTHING)
def test_response_may_have_any_status_and_id(status: Any, request_id: Any) -> None:
    talk = OpencodeConversation()
    talk.connects()
    assert talk.receive(json.dumps({"id": request_id, "status": status}).encode())


def test_delta_of_another_shape_is_decoded_fully() -> None:
    talk = OpencodeConversation().running()
    talk.receive(message("m1"), text_part("m1", "", complete=False))
    odd = delta("m1", "x")
    odd["properties"]["delta"] = None
    [emitted] = talk.receive(odd)
    assert isinstance(emitted, facts.Unknown | facts.Ignored)
    assert talk.receive(b"\xff" + as_line(delta("m1", "x")))


def test_delta_of_another_field_is_ignored() -> None:
    talk = OpencodeConversation().running()
    odd = delta("m1", "x")
    odd["properties"]["field"] = "metadata"
    assert talk.receive(odd) == [facts.Ignored("message.part.delta", "a field that is not shown")]


def test_deltas_of_other_sessions_are_ignored() -> None:
    talk = OpencodeConversation().running()
    [emitted] = talk.receive(delta("m1", "x", session="ses_x"))
    assert isinstance(emitted, facts.Ignored)
    talk.rests()
    [emitted] = talk.receive(delta("m1", "x", session=SESSION))
    assert isinstance(emitted, facts.Ignored)
