"""Events out of a journal: for late and slow readers, `amux replay`, tests and bug reports."""

from collections.abc import Callable, Iterator
from pathlib import Path

from agent_mux.adapter import Codec, CodecContext
from agent_mux.events import AgentEvent
from agent_mux.run.journal import JournalReader
from agent_mux.run.normalizer import Normalizer
from agent_mux.run.records import Record

MakeCodec = Callable[[CodecContext], Codec]


class JournalEvents:
    """Derives events batch by batch, also while the journal is still being written. `position` counts what it gave."""

    def __init__(self, path: Path, make_codec: MakeCodec) -> None:
        self._reader = JournalReader(path)
        self._records: Iterator[Record] | None = None
        self._last_at = 0
        self.header = self._reader.header
        self.normalizer = Normalizer(self.header, make_codec)
        self.position = 0

    def next_batch(self) -> list[AgentEvent] | None:
        """The events of the next record that makes any; None at the present end of the journal."""
        if self._records is None:
            self._records = self._reader.read()
        for record in self._records:
            self._last_at = record.at
            events = self.normalizer.feed(record)
            self.normalizer.take_effects()
            if events:
                self.position += len(events)
                return events
        self._records = None
        return None

    def cut_off(self) -> list[AgentEvent]:
        """The journal ends without an exit, and nobody writes it any more: the events that close the stream."""
        events = self.normalizer.cut_off(self._last_at) if self.normalizer.verdict is None else []
        self.position += len(events)
        return events


def derive_events(path: Path, make_codec: MakeCodec) -> Iterator[AgentEvent]:
    """All events of a finished journal. One that was cut off ends as `killed`."""
    journal = JournalEvents(path, make_codec)
    while (batch := journal.next_batch()) is not None:
        yield from batch
    yield from journal.cut_off()
