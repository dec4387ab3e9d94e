"""The recordings of the real CLI, and what the codec makes of them."""

from collections.abc import Iterable
from typing import Any

from tests.unit.adapters.codec_conversation import PROJECT, facts_of
from tests.unit.adapters.recordings import Recordings

from agent_mux.sdk import facts
from agent_mux.sdk.codec import CodecContext, Exit, Source
from agent_mux_adapters._dialects.stream_json.codec import ONE_SHOT, TWO_WAY
from agent_mux_adapters.claude import ADAPTER
from agent_mux_adapters.claude.codec import ClaudeCodec

RECORDINGS = Recordings(ADAPTER, ONE_SHOT)
NAMES = RECORDINGS.names
recording, native, events_of = RECORDINGS.get, RECORDINGS.native, RECORDINGS.events


def new_codec(protocol: str = ONE_SHOT, **context: Any) -> ClaudeCodec:
    return ClaudeCodec(CodecContext(agent="claude", protocol=protocol, cwd=PROJECT, **context))


def recorded_facts(name: str, *, upto: int | None = None, **context: Any) -> list[facts.Fact]:
    """Return the facts of a recording without `Ignored`."""
    codec = new_codec(RECORDINGS.protocol(name), **context)
    steps = [step for line in recording(name).stdout_lines[:upto] for step in codec.receive(line, Source.STDOUT)]
    return facts_of([*steps, *codec.finish(Exit(code=0))])


def only(steps: Iterable[Any], *kinds: type) -> list[Any]:
    return [step for step in steps if isinstance(step, kinds)]


__all__ = [
    "ADAPTER", "NAMES", "ONE_SHOT", "TWO_WAY", "events_of", "native", "new_codec", "only", "recorded_facts",
    "recording",
]  # fmt: skip
