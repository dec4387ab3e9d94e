"""Whatever OpenCode prints: nothing raises, nothing is dropped, and the hot path stays one."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opencode_transcript import ADAPTER, SESSION, Talk, delta, message, new_codec, text_part
from tests.unit.adapters.damage import ANYTHING, check, damaged, patient
from tests.unit.adapters.recordings import Recordings
from tests.unit.adapters.talking import as_line

from agent_mux import facts
from agent_mux.adapter import Exit, Source

RECORDINGS = Recordings(ADAPTER, "run-json")
LINES = {protocol: RECORDINGS.lines(protocol) for protocol in ADAPTER.protocols}


@pytest.mark.parametrize("protocol", ADAPTER.protocols)
@patient
@given(data=st.data())
def test_any_value_may_be_of_any_type(protocol: str, data: st.DataObject) -> None:
    codec = new_codec(protocol)
    check(list(codec.receive(data.draw(damaged(LINES[protocol])), Source.STDOUT)))
    list(codec.finish(Exit(code=0)))


@patient
@given(answer=ANYTHING)
def test_any_answer_may_be_anything(answer: Any) -> None:
    talk = Talk()
    talk.connects()
    for request_id in (1, 2, 3):
        assert talk.says(json.dumps({"id": request_id, "status": 200, "body": answer}).encode())


@patient
@given(status=ANYTHING, request_id=ANYTHING)
def test_an_answer_may_have_any_status_and_any_id(status: Any, request_id: Any) -> None:
    talk = Talk()
    talk.connects()
    assert talk.says(json.dumps({"id": request_id, "status": status}).encode())


def test_a_fragment_that_the_hot_path_cannot_read_is_read_the_long_way() -> None:
    talk = Talk().running()
    talk.says(message("m1"), text_part("m1", "", complete=False))
    odd = delta("m1", "x")
    odd["properties"]["delta"] = None
    [told] = talk.says(odd)
    assert isinstance(told, facts.Unknown | facts.Ignored)
    assert talk.says(b"\xff" + as_line(delta("m1", "x")))


def test_a_fragment_of_a_field_that_is_not_text_is_not_told() -> None:
    talk = Talk().running()
    odd = delta("m1", "x")
    odd["properties"]["field"] = "metadata"
    assert talk.says(odd) == [facts.Ignored("message.part.delta", "a field that is not shown")]


def test_fragments_of_other_sessions_are_not_told() -> None:
    talk = Talk().running()
    [told] = talk.says(delta("m1", "x", session="ses_x"))
    assert isinstance(told, facts.Ignored)
    talk.rests()
    [told] = talk.says(delta("m1", "x", session=SESSION))
    assert isinstance(told, facts.Ignored)
