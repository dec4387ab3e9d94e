"""Recordings of Codex, with the facts and the events of each."""

from pathlib import Path
from typing import Any

from tests.unit.adapters.codec_conversation import codec_of
from tests.unit.adapters.recordings import Recordings

from agent_mux.sdk.codec import Codec
from agent_mux_adapters.codex import ADAPTER
from agent_mux_adapters.codex.argv import APP_SERVER, EXEC

OWN = Path(__file__).parent / "recordings"  # in addition to the shared recordings
OWN_THREAD = "01a20000-0000-7000-8000-000000000000"
RECORDINGS = Recordings(ADAPTER, EXEC, OWN)
NAMES = RECORDINGS.names
recording, native, codec_for = RECORDINGS.get, RECORDINGS.native, RECORDINGS.codec
recorded_facts, events_of = RECORDINGS.facts, RECORDINGS.events


def new_codec(protocol: str = APP_SERVER, **context: Any) -> Codec:
    return codec_of(ADAPTER, protocol, **context)


__all__ = [
    "ADAPTER", "APP_SERVER", "EXEC", "NAMES", "OWN_THREAD", "codec_for", "events_of", "native", "new_codec",
    "recorded_facts", "recording",
]  # fmt: skip
