"""The recordings of the real CLI, and what the codecs and the whole pipeline make of them."""

from typing import Any

from tests.unit.adapters.codec_conversation import codec_of
from tests.unit.adapters.recordings import Recordings

from agent_mux.sdk.codec import Codec
from agent_mux_adapters.gemini import ADAPTER
from agent_mux_adapters.gemini.argv import ACP, STREAM_JSON

RECORDINGS = Recordings(ADAPTER, STREAM_JSON)
NAMES = RECORDINGS.names
recording, native, codec_for = RECORDINGS.get, RECORDINGS.native, RECORDINGS.codec
emitted, events_of = RECORDINGS.facts, RECORDINGS.events


def new_codec(protocol: str = ACP, **context: Any) -> Codec:
    return codec_of(ADAPTER, protocol, **context)


__all__ = [
    "ACP",
    "ADAPTER",
    "NAMES",
    "STREAM_JSON",
    "codec_for",
    "emitted",
    "events_of",
    "native",
    "new_codec",
    "recording",
]  # fmt: skip
