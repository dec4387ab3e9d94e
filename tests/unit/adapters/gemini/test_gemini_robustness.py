"""Fragments however they are spelled, and what the recordings prove; the rest is in `test_robustness.py`."""

from gemini_recordings import ADAPTER, NAMES, STREAM_JSON, events_of, new_codec
from tests.unit.adapters.codec_conversation import as_line

from agent_mux.sdk import facts
from agent_mux.sdk.codec import Source
from agent_mux_testing.conformance.checks import UNCLAIMED


def test_a_fragment_is_read_the_same_way_whatever_the_order_of_its_keys() -> None:
    line = {"type": "message", "role": "assistant", "content": "hi", "delta": True}
    codec = new_codec(STREAM_JSON)
    for order in (list(line), list(reversed(line))):
        shuffled = as_line({key: line[key] for key in order})
        assert list(codec.receive(shuffled, Source.STDOUT)) == [facts.TextDelta("hi")]


def test_broken_characters_in_a_fragment_are_replaced() -> None:
    line = b'{"type":"message","role":"assistant","content":"a\xff\\ud800b","delta":true}'
    assert list(new_codec(STREAM_JSON).receive(line, Source.STDOUT)) == [facts.TextDelta("a\ufffd\ufffdb")]


def test_recordings_cover_the_claimed_events() -> None:
    emitted = {event.type for name in NAMES for event in events_of(name)}
    assert emitted - UNCLAIMED == ADAPTER.capabilities.emits - UNCLAIMED
