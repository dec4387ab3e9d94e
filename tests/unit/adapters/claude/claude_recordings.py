"""The recordings of the real CLI, and what the codec and the whole pipeline make of them."""

import json
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from tests.unit.adapters.parsed_recordings import parsed

from agent_mux import facts
from agent_mux.adapter import CodecContext, Exit, Source, Step
from agent_mux.effects import Effect, WriteStdin
from agent_mux.events import AgentEvent
from agent_mux.testing.fixtures import Fixture, find_fixtures, load_fixture
from agent_mux_adapters._dialects.stream_json.codec import ONE_SHOT, TWO_WAY
from agent_mux_adapters.claude import ADAPTER
from agent_mux_adapters.claude.codec import ClaudeCodec

FIXTURES = Path(__file__).parents[4] / "fixtures"
NEWEST = "2.1.330"
FOLDERS = find_fixtures(FIXTURES, "claude")
NAMES = tuple(f"{folder.parent.name}/{folder.name}" for folder in FOLDERS)
RUN_ID = "01ARZ3NDEKTSV4RRFFQ69G5FAV"


@cache
def recording(name: str) -> Fixture:
    """By scenario, of the newest version, or by `version/scenario`."""
    return load_fixture(FIXTURES / "claude" / (name if "/" in name else f"{NEWEST}/{name}"))


def native(name: str, **wanted: Any) -> list[dict[str, Any]]:
    """The printed lines of a recording that have these values."""
    lines = [json.loads(line) for line in recording(name).stdout_lines]
    return [line for line in lines if all(line.get(key) == value for key, value in wanted.items())]


def new_codec(protocol: str = ONE_SHOT, **context: Any) -> ClaudeCodec:
    return ClaudeCodec(CodecContext(agent="claude", protocol=protocol, cwd="/home/dev/project", **context))


def told(name: str, *, upto: int | None = None, **context: Any) -> list[facts.Fact]:
    """Every fact that a recording tells, what is ignored left out."""
    fixture = recording(name)
    codec = new_codec(_protocol(fixture), **context)
    steps = [step for line in fixture.stdout_lines[:upto] for step in codec.receive(line, Source.STDOUT)]
    return speaking([*steps, *codec.finish(Exit(code=0))])


def speaking(steps: Iterable[Step]) -> list[facts.Fact]:
    return [step for step in steps if isinstance(step, facts.Fact) and not isinstance(step, facts.Ignored)]


def only(steps: Iterable[Any], *kinds: type) -> list[Any]:
    return [step for step in steps if isinstance(step, kinds)]


def effects(steps: Iterable[Step]) -> list[Effect]:
    return [step for step in steps if isinstance(step, Effect)]


def sent(steps: Iterable[Step]) -> list[dict[str, Any]]:
    """What the codec wants to be written, parsed."""
    return [json.loads(step.data) for step in steps if isinstance(step, WriteStdin)]


def receive(codec: ClaudeCodec, *lines: Any, source: Source = Source.STDOUT) -> list[Step]:
    """What the codec says to these lines: bytes as they are, anything else as JSON."""
    raw = [line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines]
    return [step for line in raw for step in codec.receive(line, source)]


def events_of(name: str, **stream: Any) -> list[AgentEvent]:
    """The events of a recording, as `amux parse` gives them."""
    fixture = recording(name)
    return parsed(ADAPTER, fixture, _protocol(fixture), RUN_ID, **stream)


def _protocol(fixture: Fixture) -> str:
    return fixture.protocol if fixture.protocol in ADAPTER.protocols else ONE_SHOT


__all__ = [
    "ADAPTER", "FOLDERS", "NAMES", "ONE_SHOT", "TWO_WAY", "effects", "events_of", "native", "new_codec", "only",
    "receive", "recording", "sent", "speaking", "told",
]  # fmt: skip
