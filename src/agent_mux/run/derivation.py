"""Deriving events from a journal: for late and slow readers, `amux replay`, the service, tests and bug reports."""

from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from agent_mux.errors import AgentMuxError
from agent_mux.events import AgentEvent
from agent_mux.journal.file import JournalReader
from agent_mux.journal.records import Exited, Header, Kind, Record, decode_exit
from agent_mux.run.normalizer import Normalizer
from agent_mux.run.plan import find_protocol
from agent_mux.run.result import RunResult
from agent_mux.run.result_builder import ResultBuilder
from agent_mux.sdk.codec import Codec, CodecContext
from agent_mux.sdk.registry import AdapterRegistry

CodecFactory = Callable[[CodecContext], Codec]


class JournalEvents:
    """Derives events batch by batch, also while the journal is being written. `position` counts the derived events."""

    def __init__(self, path: Path, make_codec: CodecFactory, *, passes_texts: bool = False) -> None:
        """`passes_texts`: whole fragments instead of accumulated texts; see `Normalizer`."""
        self._reader = JournalReader(path)
        self._records: Iterator[Record] | None = None
        self._last_at = 0
        self.exited: Exited | None = None
        """How the agent's process ended; None if no exit was read so far."""
        self.header = self._reader.header
        self.normalizer = Normalizer(self.header, make_codec, passes_texts=passes_texts)
        self.position = 0

    def next_batch(self) -> list[AgentEvent] | None:
        """Return the events of the next record that produces any; None at the current end of the journal."""
        if self._records is None:
            self._records = self._reader.read()
        for record in self._records:
            if self.exited is None:
                self._last_at = record.at
            if record.kind is Kind.EXIT:
                self.exited = decode_exit(record)
            events = self.normalizer.feed(record)
            self.normalizer.take_effects()
            if events:
                self.position += len(events)
                return events
        self._records = None
        return None

    @property
    def duration_ms(self) -> int:
        """Milliseconds from the start of the run to its exit, or to the last record that was read."""
        return self._last_at // 1000

    def cut_off(self) -> list[AgentEvent]:
        """Return the events that close the stream of a journal that ends without an exit and is no longer written."""
        events = self.normalizer.cut_off(self._last_at) if self.normalizer.verdict is None else []
        self.position += len(events)
        return events


def derive_events(path: Path, make_codec: CodecFactory) -> Iterator[AgentEvent]:
    """Yield all events of a finished journal. A journal without an exit ends as `lost`."""
    journal = JournalEvents(path, make_codec)
    while (batch := journal.next_batch()) is not None:
        yield from batch
    yield from journal.cut_off()


def codec_factory(adapters: AdapterRegistry) -> CodecFactory:
    """Return a function that creates the codec for a journal: of the agent and the protocol in its header."""

    def make_codec(context: CodecContext) -> Codec:
        return find_protocol(adapters.get(context.agent), context.protocol, adapters.get).codec(context)

    return make_codec


class DerivedRun:
    """A finished run, read from its journal: its events and then its result.

    If the journal is truncated or damaged in the middle, the run ends there: it is `lost`, unless the agent had
    already closed it.
    """

    def __init__(self, path: Path, make_codec: CodecFactory) -> None:
        """Open a journal.

        Raises PARSE_ERROR for a file that is not a journal, `OSError` for one that cannot be read.
        """
        self.path = path
        self._make_codec = make_codec
        self._journal = JournalEvents(path, make_codec)
        stream = self._journal.header.stream
        self._builder = ResultBuilder(
            collect=False, cwd=stream.cwd or "/", bounded=True, max_text_bytes=stream.max_text_bytes
        )
        self._is_read = False
        self.damage: str | None = None
        """Why the journal could not be read to its end; known after the events were read."""

    @property
    def run_id(self) -> str:
        """ULID of the run."""
        return self._journal.header.stream.run_id

    @property
    def event_count(self) -> int:
        """Number of events that were read."""
        return self._journal.position

    def batches(self) -> Iterator[tuple[int, list[AgentEvent]]]:
        """Yield all events once, each batch with the number of its first event."""
        while (batch := self._next_batch()) is not None:
            yield self._count(batch)
        if rest := self._journal.cut_off():
            yield self._count(rest)
        self._is_read = True

    def _next_batch(self) -> list[AgentEvent] | None:
        try:
            return self._journal.next_batch()
        except (AgentMuxError, msgspec.MsgspecError) as error:
            self.damage = str(error)
            return None

    @property
    def header(self) -> Header:
        """The first record of the journal."""
        return self._journal.header

    def _count(self, batch: list[AgentEvent]) -> tuple[int, list[AgentEvent]]:
        self._builder.observe(batch)
        return self._journal.position - len(batch), batch

    def result(self) -> RunResult:
        """Return the result of the run, after reading the remaining events."""
        if not self._is_read:
            for _ in self.batches():
                pass
        journal, path, make_codec = self._journal, self.path, self._make_codec
        header = journal.normalizer.header  # that of the last attempt
        return self._builder.build(
            journal.normalizer,
            derive=lambda: derive_events(path, make_codec),
            requested_model=header.options.get("model"),
            fail_on=header.options.get("fail_on", ()),
            run_id=self.run_id,
            agent=header.stream.agent,
            exit_code=None if journal.exited is None else journal.exited.code,
            signal=None if journal.exited is None else journal.exited.signal,
            duration_ms=journal.duration_ms,
            tags=header.tags,
            journal=str(path),
        )
