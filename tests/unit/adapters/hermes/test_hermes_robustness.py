"""Damaged and unknown output of Hermes raises nothing, and no line is dropped."""

import json
from typing import Any

import pytest
from hermes_transcript import LIVE, USAGE, HermesConversation, event, line_of, new_codec
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.adapters.codec_conversation import as_line
from tests.unit.adapters.damage import ANYTHING, check, damaged, patient
from tests.unit.adapters.recordings import Recordings

from agent_mux.sdk import codec, facts
from agent_mux.sdk.codec import Effect, Source
from agent_mux_adapters.hermes import ADAPTER
from agent_mux_adapters.hermes.wire import IGNORED_KINDS

RECORDINGS = Recordings(ADAPTER, "text")
LINES = {protocol: lines for protocol in ADAPTER.protocols if (lines := RECORDINGS.lines(protocol))}


@pytest.mark.parametrize("protocol", LINES)
@patient
@given(data=st.data())
def test_damaged_lines_raise_nothing(protocol: str, data: st.DataObject) -> None:
    line = data.draw(damaged(LINES[protocol]))
    for prompt in (None, "hello"):
        codec = new_codec(protocol, prompt=prompt)
        list(codec.start())
        for _ in range(2):
            check(list(codec.receive(line, Source.STDOUT)))


@patient
@given(kind=st.sampled_from(["message.complete", "tool.start", "tool.complete", "approval.request", "clarify.request",
                             "session.info", "status.update", "error", "subagent.start", "subagent.complete"]),
       payload=st.dictionaries(st.sampled_from(["text", "usage", "status", "tool_id", "name", "args", "result", "goal",
                                                "command", "choices", "request_id", "question", "mcp_servers", "kind",
                                                "subagent_id", "inline_diff", "running", "duration_s", "args_text",
                                                "stored_session_id", "message"]), ANYTHING))  # fmt: skip
def test_events_with_any_payload_raise_nothing(kind: str, payload: dict[str, Any]) -> None:
    line = json.dumps(event(kind, LIVE, **payload)).encode()
    talk = HermesConversation()
    talk.opens()
    check(list(talk.codec.receive(line, Source.STDOUT)))
    check(list(talk.codec.receive(line, Source.STDOUT)))


@pytest.mark.parametrize("line", [b"", b"null", b"[]", b"{", b'{"jsonrpc": "2.0"}', b"\xff\xfe", b"Traceback:", b"{}"])
@pytest.mark.parametrize("source", list(Source))
def test_lines_of_no_protocol_are_shown(line: bytes, source: Source) -> None:
    for protocol in ADAPTER.protocols:
        check(list(new_codec(protocol).receive(line, source)))


def test_a_new_kind_of_event_is_unknown() -> None:
    (fact,) = new_codec().receive(line_of(event("weather.changed", text="rain")), Source.STDOUT)
    assert isinstance(fact, facts.Unknown)
    assert fact.kind == "weather.changed"


def test_an_ignored_event_has_a_reason() -> None:
    for kind, reason in IGNORED_KINDS.items():
        assert list(new_codec().receive(line_of(event(kind, None)), Source.STDOUT)) == [facts.Ignored(kind, reason)]


def test_fragments_are_read_alike_however_they_are_spelled() -> None:
    quick = line_of(event("message.delta", text="é\u2028"))
    slow = as_line(event("message.delta", text="é\u2028"))
    assert quick.startswith(b'{"jsonrpc": "2.0", "method": "event", "params": {"type": "message.delta", ')
    assert list(new_codec().receive(quick, Source.STDOUT)) == list(new_codec().receive(slow, Source.STDOUT))


def test_actions_before_the_start_raise_nothing() -> None:
    for action in (
        codec.Interrupt(),
        codec.Steer("x"),
        codec.DenyAction("approval-1"),
        codec.Cancel(),
        codec.Close(),
    ):
        for prompt in (None, "hello"):
            assert all(isinstance(step, facts.Fact | Effect) for step in new_codec(prompt=prompt).request(action))


def test_a_turn_that_ends_twice_raises_nothing() -> None:
    talk = HermesConversation()
    talk.opens()
    talk.begins()
    talk.ends("Yes.")
    talk.emits("message.complete", text="Yes.", usage=USAGE, status="complete")
    assert talk.is_closed
