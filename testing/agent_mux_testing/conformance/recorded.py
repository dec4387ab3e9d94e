"""A recording as records, and the events that an adapter derives from them.

What could differ between two checks is fixed: the run id, and the time, which begins at midnight (UTC) of the day of
the recording.
"""

import datetime as dt
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from agent_mux.assembler import Verdict
from agent_mux.events import AgentEvent
from agent_mux.journal.records import Control, Exited, Header, Kind, Record, encode
from agent_mux.run.ledger import Ledger
from agent_mux.run.normalizer import Normalizer
from agent_mux.run.transcripts import observing_header
from agent_mux.sdk.adapter import Adapter, NativeProtocol
from agent_mux.sdk.codec import Effect, Source
from agent_mux.sdk.facts import Fact
from agent_mux.sdk.framing import frame_message, from_recorded_line
from agent_mux_testing.fixtures import Fixture, load_fixture, split_lines

RUN_ID = "0" * 26
_SECOND = 1_000_000  # microseconds
_ROUNDING = 1_000  # microseconds; input that was sent when the agent became quiet comes after that record
_QUIET = encode(Control("quiet"))


@dataclass(frozen=True, slots=True)
class Played:
    """The result of playing records to an adapter."""

    events: Sequence[AgentEvent]
    ledger: Ledger
    verdict: Verdict | None
    """The verdict; None when the records do not end with an exit."""
    effects: Sequence[Effect]


class Recorded:
    """One recording, and the adapter that reads it."""

    def __init__(self, adapter: Adapter, folder: Path) -> None:
        self.adapter = adapter
        self.folder = folder

    def __repr__(self) -> str:
        return "/".join(self.folder.parts[-3:])

    @cached_property
    def fixture(self) -> Fixture:
        """The recorded run, loaded from the folder."""
        return load_fixture(self.folder)

    @property
    def protocol(self) -> NativeProtocol:
        """The protocol of the recording, or the first one-way protocol when the output is in none of the adapter's."""
        protocols = self.adapter.protocols
        one_way = (protocol for protocol in protocols.values() if not protocol.two_way)
        return protocols.get(self.fixture.protocol) or next(one_way)

    @cached_property
    def lines(self) -> Sequence[bytes]:
        """The output as messages with the framing of the protocol."""
        return tuple(map(self.frame_message, split_lines(self.fixture.stdout)))

    @cached_property
    def output(self) -> bytes:
        """The whole output with the framing of the protocol."""
        is_lines = self.protocol.framing == "lines"
        return self.fixture.stdout if is_lines else b"".join(self.lines)

    def frame_message(self, line: bytes) -> bytes:
        """Return a line of the recording with the framing of the protocol."""
        framing = self.protocol.framing
        return frame_message(framing, from_recorded_line(framing, line))

    def header(self, **stream: Any) -> Header:
        """Return the header of the records; `stream` are fields of the `StreamContext`."""
        midnight = dt.datetime.combine(self.fixture.recorded, dt.time(), dt.UTC)
        started_at = int(midnight.timestamp()) * 1000
        header = observing_header(
            self.adapter, self.protocol, run_id=RUN_ID, started_at=started_at, cwd=self.fixture.cwd, **stream
        )
        return replace(header, codec=replace(header.codec, settings=dict(self.fixture.settings)))

    @cached_property
    def records(self) -> Sequence[Record]:
        """All records by time. Input without recorded times comes first."""
        fixture = self.fixture
        sent = _timed(Kind.STDIN, [*map(self.frame_message, fixture.stdin)], fixture.stdin_times)
        printed = _timed(Kind.STDOUT, self.lines, fixture.times)
        merged = sorted([*self._quiet_records(printed), *sent, *printed], key=lambda record: record.at)
        return (*merged, *self.ending(fixture.stderr))

    def _quiet_records(self, printed: Sequence[Record]) -> Iterator[Record]:
        """Yield the records that the runner writes for a `WatchesTerminal` after a pause in the output."""
        if self.protocol.quiet_after is None:
            return
        quiet_after, end = int(self.protocol.quiet_after * _SECOND), int(self.fixture.wall_s * _SECOND)
        for index, record in enumerate(printed):
            is_last = index + 1 == len(printed)
            if (end if is_last else printed[index + 1].at) - record.at >= quiet_after:
                yield Record(Kind.CONTROL, record.at + quiet_after - _ROUNDING, _QUIET)

    @property
    def sent(self) -> Sequence[Record]:
        """All input, as sent at the beginning."""
        return _timed(Kind.STDIN, [*map(self.frame_message, self.fixture.stdin)], ())

    def ending(self, stderr: bytes = b"", exited: Exited | None = None) -> Sequence[Record]:
        """Return the records of stderr and of the exit, by default the recorded one."""
        at = int(max(self.fixture.wall_s, *self.fixture.times, 0.0) * _SECOND)
        last = exited or Exited(self.fixture.exit.code, self.fixture.exit.signal)
        return (*([Record(Kind.STDERR, at, stderr)] if stderr else []), Record(Kind.EXIT, at, encode(last)))

    def chunks(self, chunks: Iterable[bytes]) -> Sequence[Record]:
        """Return the records of a run whose output arrives in these chunks at once, followed by a pause."""
        quiet = [] if self.protocol.quiet_after is None else [Record(Kind.CONTROL, 0, _QUIET)]
        printed = (Record(Kind.STDOUT, 0, chunk) for chunk in chunks)
        return (*self.sent, *printed, *quiet, *self.ending(self.fixture.stderr))

    @cached_property
    def played(self) -> Played:
        """The result of playing the whole recording."""
        return self.play(self.records)

    def play(self, records: Iterable[Record], **stream: Any) -> Played:
        """Play these records; `stream` are fields of the `StreamContext`."""
        header = self.header(**stream)
        normalizer = Normalizer(header, self.protocol.codec, forgiving=False)
        events = [event for record in records for event in normalizer.feed(record)]
        return Played(events, normalizer.ledger, normalizer.verdict, normalizer.take_effects())

    def play_cut_off(self, records: Sequence[Record], **stream: Any) -> Played:
        """Play these records as those of a recording process that was killed after them."""
        header = self.header(**stream)
        normalizer = Normalizer(header, self.protocol.codec, forgiving=False)
        events = [event for record in records for event in normalizer.feed(record)]
        events += normalizer.cut_off(records[-1].at if records else 0)
        return Played(events, normalizer.ledger, normalizer.verdict, normalizer.take_effects())

    def facts_by_line(self) -> Iterator[tuple[bytes, Sequence[Fact]]]:
        """Yield each line of the output with the facts that the codec returns for it."""
        codec = self.protocol.codec(self.header().codec)
        for line in self.fixture.stdin:
            codec.receive(from_recorded_line(self.protocol.framing, line), Source.STDIN)
        for line in self.fixture.stdout_lines:
            if line.strip():
                steps = codec.receive(from_recorded_line(self.protocol.framing, line), Source.STDOUT)
                yield line, [step for step in steps if isinstance(step, Fact)]


def _timed(kind: Kind, lines: Sequence[bytes], times: Sequence[float]) -> list[Record]:
    padded = [*times, *[times[-1] if times else 0.0] * len(lines)]
    return [Record(kind, int(at * _SECOND), line) for at, line in zip(padded, lines, strict=False)]
