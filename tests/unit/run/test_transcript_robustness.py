"""Any data: recognizing and reading transcripts raises nothing but `AgentMuxError`."""

from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_mux import AgentMuxError, encode_event, validate
from agent_mux.run.transcripts import detect_protocol, parse_transcript, read_transcript
from agent_mux.sdk.registry import AdapterRegistry
from agent_mux_testing.conformance import Recorded
from agent_mux_testing.conformance.mutations import mutated, wrapped
from agent_mux_testing.fixtures import find_fixtures

FIXTURES = Path(__file__).parents[3] / "fixtures"
REGISTRY = AdapterRegistry()
AGENTS = REGISTRY.names()
RECORDED = [agent for agent in AGENTS if find_fixtures(FIXTURES, agent)]
MAX_LINES = 40
HUGE = "1" + "0" * 30

scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
json_values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
)
of_all_agents = pytest.mark.parametrize("agent", AGENTS)
of_recorded_agents = pytest.mark.parametrize("agent", RECORDED)


@cache
def recordings(agent: str) -> list[list[bytes]]:
    """Return the first lines of each recording of this agent."""
    folders = find_fixtures(FIXTURES, agent)
    return [list(Recorded(REGISTRY.get(agent), folder).fixture.stdout_lines[:MAX_LINES]) for folder in folders]


@cache
def values_by_key(agent: str) -> dict[str, list[Any]]:
    """Return the values of each key at the top of a recorded line."""
    found: dict[str, list[Any]] = {}
    for line in (line for lines in recordings(agent) for line in lines):
        try:
            native = msgspec.json.decode(line)
        except msgspec.DecodeError:
            continue
        for key, value in native.items() if isinstance(native, dict) else ():
            found.setdefault(key, []).append(value)
    return found


@of_all_agents
@given(json_values)
def test_sniff_accepts_any_json_value(agent: str, value: Any) -> None:
    for protocol in REGISTRY.get(agent).protocols.values():
        assert protocol.sniff(value) in {True, False}


@pytest.mark.slow
@of_recorded_agents
@given(st.data())
def test_sniff_accepts_any_value_of_a_known_key(agent: str, data: st.DataObject) -> None:
    known = values_by_key(agent)
    keys = data.draw(st.lists(st.sampled_from(sorted(known)), unique=True)) if known else []
    native = {key: data.draw(st.sampled_from(known[key]) | json_values) for key in keys}
    for protocol in REGISTRY.get(agent).protocols.values():
        assert protocol.sniff(native) in {True, False}


@pytest.mark.slow
@of_recorded_agents
@settings(max_examples=50)
@given(st.data(), st.integers(0, 2**32), st.booleans())
def test_mutated_recording_parses_or_is_refused(agent: str, data: st.DataObject, seed: int, is_wrapped: bool) -> None:
    random = Random(seed)  # noqa: S311  # a test, not a secret
    lines = data.draw(st.sampled_from(recordings(agent)))
    if is_wrapped:
        lines = [wrapped(line, random) for line in lines]
    check(agent, b"\n".join(mutated(lines, lines, random)))


@of_all_agents
@given(st.binary(max_size=80))
def test_arbitrary_bytes_parse_or_are_refused(agent: str, data: bytes) -> None:
    check(agent, data)


@of_all_agents
@pytest.mark.parametrize("at", ["1e400", "1e300", "9e15", HUGE, "-1", "true", "null", '"1"', "[]", "NaN"])
def test_any_time_of_a_line_parses_or_is_refused(agent: str, at: str) -> None:
    check(agent, b'{"t":%s,"dir":"<-","msg":{"type":"text"}}\n' % at.encode())


@of_all_agents
@pytest.mark.parametrize("message", [HUGE, f'{{"type":{HUGE}}}', '"\\ud800"', "NaN", "[" * 100 + "]" * 100])
def test_any_wrapped_message_parses_or_is_refused(agent: str, message: str) -> None:
    check(agent, b'{"t":1,"dir":"<-","msg":%s}\n' % message.encode())


def check(agent: str, data: bytes) -> None:
    adapter = REGISTRY.get(agent)
    transcript = read_transcript(data)
    try:
        protocol = detect_protocol(adapter, transcript)
    except AgentMuxError as error:
        assert error.code == "PARSE_ERROR"  # noqa: PT017  # the other outcome is checked below
        if not adapter.protocols:
            return
        protocol = next(iter(adapter.protocols.values()))
    events = list(parse_transcript(adapter, transcript, protocol=protocol))
    assert validate(events) == []
    assert all(map(encode_event, events))
