"""The codec never raises and always emits facts, whatever is printed in whatever order."""

import json
from typing import Any

from claude_recordings import NAMES, TWO_WAY, new_codec, recording
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.adapters.codec_conversation import as_line
from tests.unit.adapters.damage import JSON, damaged, patient

from agent_mux.sdk import facts
from agent_mux.sdk.codec import Exit, Source
from agent_mux_adapters.claude import ADAPTER

LINES = [line for name in NAMES for line in recording(name).stdout_lines if line.startswith(b"{")]
OURS = [line for name in NAMES for line in recording(name).stdin if line.startswith(b"{")]


def feed(lines: list[bytes], source: Source = Source.STDOUT, **context: Any) -> list[Any]:
    codec = new_codec(**context)
    steps = list(codec.start())
    for line in lines:
        recorded_facts = list(codec.receive(line, source))
        assert any(isinstance(step, facts.Fact) for step in recorded_facts)
        steps += recorded_facts
    return [*steps, *codec.finish(Exit())]


@patient
@given(lines=st.lists(damaged(LINES), min_size=1, max_size=8))
def test_values_of_any_type_never_raise(lines: list[bytes]) -> None:
    feed(lines)
    feed(lines, protocol=TWO_WAY, prompt="go")


@patient
@given(lines=st.lists(damaged(OURS), min_size=1, max_size=4))
def test_our_side_of_a_transcript_never_raises(lines: list[bytes]) -> None:
    feed(lines, Source.STDIN, protocol=TWO_WAY)


@patient
@given(lines=st.lists(st.binary(max_size=60) | JSON.map(as_line), max_size=5))
def test_any_bytes_never_raise(lines: list[bytes]) -> None:
    feed(lines)


@patient
@given(lines=st.lists(st.sampled_from(LINES), max_size=30))
def test_real_lines_in_any_order_never_raise(lines: list[bytes]) -> None:
    feed(lines, protocol=TWO_WAY, prompt="go")


@patient
@given(native=damaged(LINES).map(json.loads).filter(lambda native: isinstance(native, dict)))
def test_recognizing_a_line_never_raises(native: dict[str, Any]) -> None:
    for protocol in ADAPTER.protocols.values():
        assert protocol.sniff(native) in {True, False}


def test_deeply_nested_and_broken_lines_never_raise() -> None:
    deep = b'{"type":"stream_event","event":' + b"[" * 5000 + b"]" * 5000 + b"}"
    half = (
        b'{"type":"stream_event","event":{"type":"content_block_delta","delta":{"type":"text_delta","text":"\\ud83d"}}}'
    )
    steps = feed([deep, half, half[:40], b"", b"\xff\xfe", b"null", b"[]", b'"x"', b"1e999"])
    assert facts.TextDelta("\ufffd") in steps


def test_same_lines_emit_the_same_facts() -> None:
    lines = list(recording("subagent_async").stdout_lines)
    assert feed(lines) == feed(lines)
