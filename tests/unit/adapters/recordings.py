"""The recordings of one agent's CLI, with the steps and events that its codecs make of them."""

import json
from collections.abc import Collection, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from tests.unit.adapters.codec_conversation import codec_of, facts_of

from agent_mux.events import AgentEvent
from agent_mux.journal.records import Exited
from agent_mux.run.transcripts import Transcript, parse_transcript
from agent_mux.sdk.adapter import Adapter
from agent_mux.sdk.codec import Codec, CodecOutput, Source
from agent_mux.sdk.facts import LogLine
from agent_mux.sdk.native_json import load_object
from agent_mux_testing.fixtures import Fixture, find_fixtures, load_fixture

FIXTURES = Path(__file__).parents[3] / "fixtures"
RUN_ID = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
KIND_KEYS = frozenset({"type", "subtype", "method", "role", "status", "command", "tool", "toolName", "sessionUpdate"})
"""The keys near the top of a line whose values determine its kind."""
SUBAGENT_KEYS = frozenset({"agentId", "parentToolCallId", "parent_tool_use_id"})
"""The keys that lines of sub-agents have."""


class Recordings:
    """The recordings of an agent by `version/scenario`, or by scenario for the newest version."""

    def __init__(self, adapter: Adapter, usual: str, *more: Path) -> None:
        """Load the recordings.

        `usual` is the protocol of recordings without one; `more` are directories besides the shared one.
        """
        self.adapter = adapter
        self._usual = usual
        folders = [folder for root in (FIXTURES, *more) for folder in find_fixtures(root, adapter.agent)]
        self._folders = {"/".join(folder.parts[-2:]): folder for folder in folders}
        self._newest = {folder.name: folder for folder in folders}
        assert len(self._folders) == len(folders)
        self.names = tuple(sorted(self._folders))

    @cache  # noqa: B019  # one per agent, for as long as the tests run
    def get(self, name: str) -> Fixture:
        return load_fixture(self._folders[name] if "/" in name else self._newest[name])

    @property
    def in_known_protocols(self) -> tuple[str, ...]:
        """The recordings in a protocol that the adapter reads; the others are plain text."""
        return tuple(name for name in self.names if self.get(name).protocol in self.adapter.protocols)

    def protocol(self, name: str) -> str:
        protocol_name = self.get(name).protocol
        return protocol_name if protocol_name in self.adapter.protocols else self._usual

    def codec(self, name: str, **context: Any) -> Codec:
        return codec_of(self.adapter, self.protocol(name), **context)

    def native(self, name: str, **wanted: Any) -> list[dict[str, Any]]:
        """Return the printed lines of a recording that have these values."""
        lines = [json.loads(line) for line in self.get(name).stdout_lines]
        return [line for line in lines if all(line.get(key) == value for key, value in wanted.items())]

    def steps(self, name: str, *, with_stdin: bool = True, **context: Any) -> list[CodecOutput]:
        """Return all steps of the codec for a recording."""
        codec = self.codec(name, **context)
        steps = [*codec.start()]
        for source, line in _lines(self.get(name)):
            if with_stdin or source is not Source.STDIN:
                steps += codec.receive(line, source)
        return [*steps, *codec.finish(self.get(name).exit)]

    def facts(self, name: str, *kinds: type, **options: Any) -> list[Any]:
        """Return the facts of these kinds; without kinds all but `Ignored` and log lines."""
        found = facts_of(self.steps(name, **options), *kinds)
        return found if kinds else [fact for fact in found if not isinstance(fact, LogLine)]

    def events(self, name: str, **stream: Any) -> list[AgentEvent]:
        """Return the events as `amux parse` emits them."""
        fixture = self.get(name)
        transcript = Transcript(
            lines=tuple((source, line, 0) for source, line in _lines(fixture)),
            exited=Exited(code=fixture.exit.code, signal=fixture.exit.signal),
        )
        protocol = self.adapter.protocols[self.protocol(name)]
        return list(
            parse_transcript(self.adapter, transcript, protocol=protocol, run_id=RUN_ID, started_at=1, **stream)
        )

    def lines(self, protocol: str, *, without: Collection[str] = ()) -> list[bytes]:
        """Return one line of each kind of a protocol, without very long lines."""
        found: dict[Any, bytes] = {}
        for name in self.names:
            if self.get(name).protocol == protocol and name not in without:
                for line in self.get(name).stdout_lines:
                    if len(line) < 20_000 and (native := load_object(line)) is not None:
                        found.setdefault((*sorted(native), *_kind_of(native)), line)
        return list(found.values())


def _lines(fixture: Fixture) -> Iterator[tuple[Source, bytes]]:
    """Yield our lines first, then the agent's, because their order is not recorded."""
    streams = ((Source.STDIN, fixture.stdin), (Source.STDOUT, fixture.stdout_lines))
    yield from ((source, line) for source, lines in streams for line in lines)
    yield from ((Source.STDERR, line) for line in fixture.stderr.splitlines())


def _kind_of(native: dict[str, Any], *path: str) -> Iterator[tuple[str, ...]]:
    """Yield the keys and values that determine the kind of a line, with their paths."""
    for key, value in native.items():
        if isinstance(value, dict) and len(path) < 3:
            yield from _kind_of(value, *path, key)
        elif key in KIND_KEYS and isinstance(value, str):
            yield (*path, key, value)
        elif key in SUBAGENT_KEYS and value is not None:
            yield (*path, key)
