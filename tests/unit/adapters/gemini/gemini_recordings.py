"""The recordings of the real CLI, and what the codecs and the whole pipeline make of them."""

import json
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from tests.unit.adapters.parsed_recordings import parsed

from agent_mux.adapter import Codec, CodecContext, Source, Step
from agent_mux.effects import Effect, WriteStdin
from agent_mux.events import AgentEvent
from agent_mux.facts import Fact, Ignored, LogLine
from agent_mux.testing.fixtures import Fixture, find_fixtures, load_fixture
from agent_mux_adapters.gemini import ADAPTER
from agent_mux_adapters.gemini.argv import ACP, STREAM_JSON

SHARED = Path(__file__).parents[4] / "fixtures"
FOLDERS = {folder.name: folder for folder in find_fixtures(SHARED, "gemini")}
NAMES = tuple(sorted(FOLDERS))
PLACE = "/home/dev/project"
RUN_ID = "01ARZ3NDEKTSV4RRFFQ69G5FAV"


@cache
def recording(name: str) -> Fixture:
    return load_fixture(FOLDERS[name])


def native(name: str, **wanted: Any) -> list[dict[str, Any]]:
    """The printed lines of a recording that have these values."""
    lines = [json.loads(line) for line in recording(name).stdout_lines]
    return [line for line in lines if all(line.get(key) == value for key, value in wanted.items())]


def new_codec(protocol: str = ACP, **context: Any) -> Codec:
    settings = {"agent": "gemini", "protocol": protocol, "cwd": PLACE, **context}
    return ADAPTER.protocols[protocol].codec(CodecContext(**settings))


def codec_for(name: str, **context: Any) -> Codec:
    return new_codec(protocol_of(recording(name)), **context)


def protocol_of(fixture: Fixture) -> str:
    return fixture.protocol if fixture.protocol in ADAPTER.protocols else STREAM_JSON


def steps_of(name: str, *, with_stdin: bool = True, **context: Any) -> list[Step]:
    """All that the codec says to a recording; the lines that were sent come first, as their times are not known."""
    fixture = recording(name)
    codec = codec_for(name, **context)
    streams = [
        *((Source.STDIN, line) for line in fixture.stdin if with_stdin),
        *((Source.STDOUT, line) for line in fixture.stdout_lines),
        *((Source.STDERR, line) for line in fixture.stderr.splitlines()),
    ]
    steps = [*codec.start()]
    for source, line in streams:
        steps += codec.receive(line, source)
    return [*steps, *codec.finish(fixture.exit)]


def told(name: str, *kinds: type, **options: Any) -> list[Any]:
    """The facts of these kinds that a recording tells; without kinds all but the silent ones."""
    facts = [step for step in steps_of(name, **options) if isinstance(step, Fact)]
    if kinds:
        return [fact for fact in facts if isinstance(fact, kinds)]
    return [fact for fact in facts if not isinstance(fact, Ignored | LogLine)]


def receive(codec: Codec, *lines: Any, source: Source = Source.STDOUT) -> list[Step]:
    """What the codec says to these lines: bytes as they are, anything else as JSON."""
    raw = [line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines]
    return [step for line in raw for step in codec.receive(line, source)]


def speaking(steps: Iterable[Step]) -> list[Step]:
    return [step for step in steps if not isinstance(step, Ignored)]


def effects(steps: Iterable[Step]) -> list[Effect]:
    return [step for step in steps if isinstance(step, Effect)]


def sent(steps: Iterable[Step]) -> list[dict[str, Any]]:
    """What the codec wants to be written, parsed."""
    return [json.loads(step.data) for step in steps if isinstance(step, WriteStdin)]


def events_of(name: str, **stream: Any) -> list[AgentEvent]:
    """The events of a recording, as `amux parse` gives them."""
    fixture = recording(name)
    return parsed(ADAPTER, fixture, protocol_of(fixture), RUN_ID, **stream)


__all__ = [
    "ACP",
    "ADAPTER",
    "FOLDERS",
    "NAMES",
    "PLACE",
    "STREAM_JSON",
    "codec_for",
    "effects",
    "events_of",
    "native",
    "new_codec",
    "protocol_of",
    "receive",
    "recording",
    "sent",
    "speaking",
    "steps_of",
    "told",
]  # fmt: skip
