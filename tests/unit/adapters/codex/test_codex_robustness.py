"""Fragments in any spelling, and the claimed event types. See `test_robustness.py` for other robustness tests."""

from codex_recordings import ADAPTER, APP_SERVER, NAMES, events_of, new_codec
from tests.unit.adapters.codec_conversation import as_line

from agent_mux.sdk import facts
from agent_mux.sdk.codec import Source


def test_a_fragment_is_read_the_same_way_whatever_the_order_of_its_keys() -> None:
    params = {"delta": "hi", "itemId": "m", "threadId": "t"}
    codec = new_codec(APP_SERVER)
    for line in ({"method": "item/agentMessage/delta", "params": params}, {"params": params, "emittedAtMs": 1,
                  "method": "item/agentMessage/delta"}):  # fmt: skip
        steps = list(codec.receive(as_line(line), Source.STDOUT))
        assert facts.TextDelta("hi") in steps


def test_broken_characters_in_a_fragment_are_replaced() -> None:
    line = b'{"method":"item/agentMessage/delta","params":{"threadId":"t","itemId":"m","delta":"a\xff\\ud800b"}}'
    assert facts.TextDelta("a\ufffd\ufffdb") in list(new_codec(APP_SERVER).receive(line, Source.STDOUT))


def test_the_recordings_prove_what_the_adapter_claims() -> None:
    emitted = {event.type for name in NAMES for event in events_of(name)}
    only_here = {"agentdoc_read", "file_write"}  # the shared recordings contain all other claimed types
    assert emitted == ADAPTER.capabilities.emits | only_here
