"""Whatever Gemini CLI prints: nothing raises, nothing is dropped, and the events stay lawful."""

import copy
import json
from typing import Any

import pytest
from gemini_recordings import (
    ACP,
    ADAPTER,
    NAMES,
    STREAM_JSON,
    codec_for,
    events_of,
    new_codec,
    protocol_of,
    recording,
    steps_of,
    told,
)
from hypothesis import given
from hypothesis import strategies as st

from agent_mux import facts
from agent_mux.adapter import Exit, Source, Step
from agent_mux.contract import validate
from agent_mux.effects import Effect
from agent_mux.native_json import load_object
from agent_mux.testing.conformance.claims import MADE_BY_THE_MUX

SPOKEN = tuple(name for name in NAMES if recording(name).protocol in ADAPTER.protocols)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
ANYTHING = JSON | st.sampled_from([10**30, -1, "\ud800", {}, [], "", "completed", {"type": {}}])


CUT_OFF = {"big_output"}
"""The reader was slow: the CLI dropped the rest of a line, and what came after it."""


def lines_of(protocol: str) -> list[bytes]:
    """One line of each kind that a protocol has, from all recordings."""
    found: dict[str, bytes] = {}
    for name in SPOKEN:
        fixture = recording(name)
        if fixture.protocol == protocol and name not in CUT_OFF:
            for line in fixture.stdout_lines:
                found.setdefault(kind_of(load_object(line) or {}), line)
    return list(found.values())


def kind_of(line: dict[str, Any]) -> str:
    update = (line.get("params") or {}).get("update") or line
    return (
        f"{line.get('type') or line.get('method')} {update.get('sessionUpdate')} {update.get('status')} {'id' in line}"
    )


STREAM_JSON_LINES = lines_of(STREAM_JSON)
ACP_LINES = lines_of(ACP)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Where a value has parts."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, part in inner for place in places(part, (*path, key)))]


def with_part(value: Any, path: tuple[Any, ...], part: Any) -> Any:
    if not path:
        return part
    changed = copy.deepcopy(value)
    holder = changed
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = part
    return changed


@st.composite
def damaged(draw: st.DrawFn, lines: list[bytes]) -> bytes:
    """A real line with one value replaced by anything."""
    line = json.loads(draw(st.sampled_from(lines)))
    for _ in range(draw(st.integers(1, 3))):
        path = draw(st.sampled_from(places(line)))
        line = with_part(line, path, draw(ANYTHING))
    return json.dumps(line).encode()


def check(steps: list[Step]) -> None:
    assert all(isinstance(step, facts.Fact | Effect) for step in steps)
    told = [step for step in steps if isinstance(step, facts.Fact)]
    assert told
    assert len(told) == 1 or not any(isinstance(fact, facts.Ignored) for fact in told)


@pytest.mark.parametrize("name", NAMES)
def test_every_line_of_every_recording_is_known(name: str) -> None:
    assert told(name, facts.Unknown) == []
    assert told(name, facts.Unknown, with_stdin=False) == []


@pytest.mark.parametrize("name", SPOKEN)
def test_every_line_says_something(name: str) -> None:
    codec = codec_for(name)
    for line in recording(name).stdout_lines:
        check(list(codec.receive(line, Source.STDOUT)))


@pytest.mark.parametrize("name", sorted({*SPOKEN} - CUT_OFF))
def test_only_noise_is_a_log_line_of_stdout(name: str) -> None:
    assert [fact for fact in told(name, facts.LogLine) if fact.source == "stdout"] == []


@pytest.mark.parametrize("name", NAMES)
def test_the_events_of_every_recording_are_lawful(name: str) -> None:
    assert list(validate(events_of(name, include_subagent_events=True))) == []


@given(st.lists(damaged(STREAM_JSON_LINES), min_size=1, max_size=4))
def test_no_damaged_line_of_stream_json_raises(lines: list[bytes]) -> None:
    codec = new_codec(STREAM_JSON)
    for line in lines:
        check(list(codec.receive(line, Source.STDOUT)))
    list(codec.finish(Exit()))


@given(st.lists(st.sampled_from(ACP_LINES) | damaged(ACP_LINES), min_size=1, max_size=6), st.booleans())
def test_no_damaged_line_of_acp_raises(lines: list[bytes], live: bool) -> None:
    codec = new_codec(ACP, prompt="hello" if live else None)
    list(codec.start())
    for line in lines:
        check(list(codec.receive(line, Source.STDOUT)))
    list(codec.finish(Exit()))


@given(damaged(ACP_LINES))
def test_no_damaged_line_of_another_client_raises(line: bytes) -> None:
    check(list(new_codec(ACP).receive(line, Source.STDIN)))


@given(st.sampled_from([STREAM_JSON, ACP]), st.binary(max_size=60), st.sampled_from(Source))
def test_no_bytes_raise(protocol: str, line: bytes, source: Source) -> None:
    check(list(new_codec(protocol).receive(line, source)))


@given(st.sampled_from(ACP_LINES + STREAM_JSON_LINES), st.integers(0, 400), st.integers(0, 255))
def test_no_bent_byte_raises(line: bytes, at: int, byte: int) -> None:
    bent = line[: at % len(line)] + bytes([byte]) + line[at % len(line) + 1 :]
    for protocol in (STREAM_JSON, ACP):
        check(list(new_codec(protocol).receive(bent, Source.STDOUT)))


def test_deep_nesting_is_noise() -> None:
    deep = b"[" * 5000 + b"]" * 5000
    for line in (b'{"method":"session/update","params":' + deep + b"}", b'{"type":"message","content":' + deep + b"}"):
        for protocol in (STREAM_JSON, ACP):
            check(list(new_codec(protocol).receive(line, Source.STDOUT)))


@pytest.mark.parametrize("name", ["live_tools", "live_subagent", "acp_live_tools", "acp_live_interrupt"])
def test_a_conversation_can_be_joined_anywhere(name: str) -> None:
    lines = recording(name).stdout_lines
    for start in range(len(lines)):
        codec = codec_for(name)
        for line in lines[start:]:
            check(list(codec.receive(line, Source.STDOUT)))


def test_a_fragment_is_read_the_same_way_whatever_the_order_of_its_keys() -> None:
    line = {"type": "message", "role": "assistant", "content": "hi", "delta": True}
    codec = new_codec(STREAM_JSON)
    for order in (list(line), list(reversed(line))):
        shuffled = json.dumps({key: line[key] for key in order}, separators=(",", ":")).encode()
        assert list(codec.receive(shuffled, Source.STDOUT)) == [facts.TextDelta("hi")]


def test_broken_characters_in_a_fragment_are_replaced() -> None:
    line = b'{"type":"message","role":"assistant","content":"a\xff\\ud800b","delta":true}'
    assert list(new_codec(STREAM_JSON).receive(line, Source.STDOUT)) == [facts.TextDelta("a\ufffd\ufffdb")]


def test_the_recordings_prove_what_the_adapter_claims() -> None:
    emitted = {event.type for name in NAMES for event in events_of(name)}
    assert emitted - MADE_BY_THE_MUX == ADAPTER.capabilities.emits - MADE_BY_THE_MUX


@pytest.mark.parametrize("name", [name for name in SPOKEN if recording(name).stdout])
def test_a_transcripts_protocol_is_told_by_its_lines(name: str) -> None:
    fixture = recording(name)
    lines = [load_object(line) or {} for line in fixture.stdout_lines]
    recognized = {protocol.name for protocol in ADAPTER.protocols.values() for line in lines if protocol.sniff(line)}
    assert recognized == {fixture.protocol}


def test_every_recording_was_looked_at() -> None:
    assert {protocol_of(recording(name)) for name in SPOKEN} == {STREAM_JSON, ACP}
    assert all(steps_of(name) or not recording(name).stdout for name in NAMES)
