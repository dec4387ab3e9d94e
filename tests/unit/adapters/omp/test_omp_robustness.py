"""Whatever omp prints: nothing raises, nothing is dropped, and the events stay lawful."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.adapters.pi_damage import bent, check, damaged
from tests.unit.adapters.pi_family import Recordings, codec_of

from agent_mux import facts
from agent_mux.adapter import Exit, Source
from agent_mux.contract import validate
from agent_mux.native_json import load_object
from agent_mux_adapters.omp import ADAPTER

ALL = Recordings(ADAPTER)
PROTOCOLS = tuple(ADAPTER.protocols)
LINES = {protocol: ALL.lines(protocol) for protocol in PROTOCOLS}
SPOKEN = [name for name in ALL.names if ALL.get(name).stdout]


@pytest.mark.parametrize("name", ALL.names)
def test_every_line_of_every_recording_is_known(name: str) -> None:
    assert ALL.facts(name, facts.Unknown) == []
    assert ALL.facts(name, facts.Unknown, with_stdin=False) == []


@pytest.mark.parametrize("name", ALL.names)
def test_every_line_says_something(name: str) -> None:
    codec = ALL.codec(name)
    for line in ALL.get(name).stdout_lines:
        check(list(codec.receive(line, Source.STDOUT)))


@pytest.mark.parametrize("name", ALL.names)
def test_the_events_of_every_recording_are_lawful(name: str) -> None:
    assert list(validate(ALL.events(name, include_subagent_events=True))) == []


@pytest.mark.parametrize("protocol", PROTOCOLS)
@given(st.data(), st.booleans())
def test_no_damaged_line_raises(protocol: str, data: st.DataObject, live: bool) -> None:
    lines = LINES[protocol]
    told = data.draw(st.lists(st.sampled_from(lines) | damaged(lines), min_size=1, max_size=6))
    codec = codec_of(ADAPTER, protocol, prompt="hello" if live and ADAPTER.protocols[protocol].two_way else None)
    list(codec.start())
    for line in told:
        check(list(codec.receive(line, Source.STDOUT)))
    list(codec.finish(Exit()))


@given(st.data())
def test_no_damaged_line_of_another_client_raises(data: st.DataObject) -> None:
    ours = [line for name in ALL.names for line in ALL.get(name).stdin[:3] if load_object(line)]
    check(list(codec_of(ADAPTER, "rpc").receive(data.draw(damaged(ours)), Source.STDIN)))


@given(st.sampled_from(PROTOCOLS), st.binary(max_size=60), st.sampled_from(Source))
def test_no_bytes_raise(protocol: str, line: bytes, source: Source) -> None:
    check(list(codec_of(ADAPTER, protocol).receive(line, source)))


@pytest.mark.parametrize("protocol", PROTOCOLS)
@given(st.data(), st.integers(0, 400), st.integers(0, 255))
def test_no_bent_byte_raises(protocol: str, data: st.DataObject, at: int, byte: int) -> None:
    line = bent(data.draw(st.sampled_from(LINES[protocol])), at, byte)
    check(list(codec_of(ADAPTER, protocol).receive(line, Source.STDOUT)))


@pytest.mark.parametrize(
    "head", [b'{"type":"message_update","assistantMessageEvent":', b'{"type":"agent_end","messages":']
)
def test_deep_nesting_is_no_danger(head: bytes) -> None:
    line = head + b"[" * 5000 + b"]" * 5000 + b"}"
    for protocol in PROTOCOLS:
        check(list(codec_of(ADAPTER, protocol).receive(line, Source.STDOUT)))


@pytest.mark.parametrize("name", SPOKEN)
def test_a_recording_can_be_joined_anywhere(name: str) -> None:
    lines = ALL.get(name).stdout_lines
    for start in range(0, len(lines), max(len(lines) // 20, 1)):
        codec = ALL.codec(name)
        for line in lines[start : start + 40]:
            check(list(codec.receive(line, Source.STDOUT)))


@pytest.mark.parametrize("name", SPOKEN)
def test_a_transcripts_protocol_is_told_by_its_lines(name: str) -> None:
    lines = [load_object(line) or {} for line in ALL.get(name).stdout_lines]
    recognized = [p.name for line in lines for p in ADAPTER.protocols.values() if p.sniff(line)]
    assert recognized[:1] == [ALL.get(name).protocol] or not any(load_object(x) for x in ALL.get(name).stdout_lines)
