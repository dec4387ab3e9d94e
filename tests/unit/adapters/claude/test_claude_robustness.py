"""Whatever is printed, and in whatever order: the codec never raises and always says something."""

import json
from typing import Any

from claude_recordings import NAMES, TWO_WAY, new_codec, recording
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_mux import facts
from agent_mux.adapter import Exit, Source
from agent_mux_adapters.claude import ADAPTER

LINES = [json.loads(line) for name in NAMES for line in recording(name).stdout_lines if line.startswith(b"{")]
OURS = [json.loads(line) for name in NAMES for line in recording(name).stdin if line.startswith(b"{")]

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


@st.composite
def damaged(draw: st.DrawFn, lines: list[dict[str, Any]]) -> bytes:
    """A real line in which some values, at any depth, became something else."""
    line = json.loads(json.dumps(draw(st.sampled_from(lines))))
    for _ in range(draw(st.integers(1, 3))):
        place: Any = line
        for _ in range(draw(st.integers(0, 4))):
            inner = list(place.values()) if isinstance(place, dict) else place
            inner = [value for value in inner if isinstance(value, dict | list) and value]
            if not inner:
                break
            place = draw(st.sampled_from(inner))
        key = draw(st.sampled_from(list(place) if isinstance(place, dict) else list(range(len(place)))))
        if isinstance(place, dict) and draw(st.booleans()):
            del place[key]
        else:
            place[key] = draw(json_values)
        if not line:
            break
    return json.dumps(line).encode()


def feed(lines: list[bytes], source: Source = Source.STDOUT, **context: Any) -> list[Any]:
    codec = new_codec(**context)
    steps = list(codec.start())
    for line in lines:
        told = list(codec.receive(line, source))
        assert any(isinstance(step, facts.Fact) for step in told)
        steps += told
    return [*steps, *codec.finish(Exit())]


@settings(max_examples=200, deadline=None)
@given(lines=st.lists(damaged(LINES), min_size=1, max_size=8))
def test_values_of_any_type_never_raise(lines: list[bytes]) -> None:
    feed(lines)
    feed(lines, protocol=TWO_WAY, prompt="go")


@settings(max_examples=100, deadline=None)
@given(lines=st.lists(damaged(OURS), min_size=1, max_size=4))
def test_our_side_of_a_transcript_never_raises(lines: list[bytes]) -> None:
    feed(lines, Source.STDIN, protocol=TWO_WAY)


@settings(max_examples=200, deadline=None)
@given(lines=st.lists(st.binary(max_size=60) | json_values.map(lambda v: json.dumps(v).encode()), max_size=5))
def test_any_bytes_never_raise(lines: list[bytes]) -> None:
    feed(lines)


@settings(max_examples=100, deadline=None)
@given(lines=st.lists(st.sampled_from(LINES).map(lambda line: json.dumps(line).encode()), max_size=30))
def test_real_lines_in_any_order_never_raise(lines: list[bytes]) -> None:
    feed(lines, protocol=TWO_WAY, prompt="go")


@settings(max_examples=100, deadline=None)
@given(line=damaged(LINES))
def test_looking_whose_line_it_is_never_raises(line: bytes) -> None:
    for protocol in ADAPTER.protocols.values():
        assert protocol.sniff(json.loads(line)) in {True, False}


def test_deeply_nested_and_broken_lines_never_raise() -> None:
    deep = b'{"type":"stream_event","event":' + b"[" * 5000 + b"]" * 5000 + b"}"
    half = (
        b'{"type":"stream_event","event":{"type":"content_block_delta","delta":{"type":"text_delta","text":"\\ud83d"}}}'
    )
    steps = feed([deep, half, half[:40], b"", b"\xff\xfe", b"null", b"[]", b'"x"', b"1e999"])
    assert facts.TextDelta("\ufffd") in steps


def test_the_same_lines_tell_the_same_facts() -> None:
    lines = list(recording("subagent_async").stdout_lines)
    assert feed(lines) == feed(lines)
