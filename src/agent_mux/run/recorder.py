"""The recorder of a run: writes each record to the journal, feeds it to the normalizer, and publishes the events.

A recording begins when the run is admitted, or when it ends without being admitted: a waiting run has no file. All
times count from there: those of records and events, the time limit, the duration. Earlier notes are recorded at the
beginning.

The recorder never acts on the agent. Neither a failing journal nor a failing subscriber ends a run.
"""

import logging
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from msgspec import structs

from agent_mux.assembler import cut_diff
from agent_mux.errors import ErrorCode
from agent_mux.events import AgentEvent, DebugEvent
from agent_mux.journal.file import JournalWriter
from agent_mux.journal.records import Control, Exited, Kind, Record, encode
from agent_mux.run.changed_files import ChangedFile
from agent_mux.run.derivation import JournalEvents, derive_events
from agent_mux.run.edit_preview import diff_of_edits, read_files
from agent_mux.run.log import RunLog
from agent_mux.run.normalizer import Normalizer
from agent_mux.run.plan import RunPlan
from agent_mux.run.readers import EventReader, EventWindow, Listeners, OrderedDelivery, window_bytes
from agent_mux.run.result import RunResult
from agent_mux.run.result_builder import ResultBuilder
from agent_mux.sdk.codec import Effect


class RunRecorder:
    """The records of one run, and the events and the result that follow from them."""

    def __init__(self, plan: RunPlan) -> None:
        self.plan = plan
        """The plan of the current attempt."""
        self._new_codec = plan.new_codec
        self.header = plan.header
        """The planned header, with the time at which the recording began."""
        """The files that changed, once the working tree was compared; None: as the events report."""
        self.normalizer = Normalizer(plan.header, plan.new_codec, context=plan.context, redactor=plan.redactor)
        self.listeners = Listeners(self.note)
        self.log = RunLog(plan.run_id, plan.adapter.agent, plan.redactor, self.note)
        limit = plan.header.stream.max_text_bytes
        self.window = EventWindow(plan.options.event_buffer_size, self._loss, window_bytes(limit))
        self._builder = ResultBuilder(cwd=plan.cwd, collect=plan.options.collect_events, max_text_bytes=limit)
        self._delivery = OrderedDelivery(
            self._builder.observe, self.log.observe, self.window.append, self.listeners.call
        )
        self.publish = self._delivery.deliver
        """Publishes the events of a record to the observers."""
        self._started = 0
        self._journal: JournalWriter | None = None
        self._is_begun = False
        self._deferred_notes: list[str] = []
        """Notes from before the recording began."""
        self._journal_path: Path | None = None
        """Path of the file that this run created; None without one, even if another file exists there."""

    def follow(self, plan: RunPlan) -> None:
        """Record the attempts of another plan from now on: with its secrets, and with the context of its codec."""
        self.plan = plan
        self.normalizer.next_context = plan.context
        self.normalizer.masks.use(plan.redactor, holds=plan.protocol.framing != "chunks")
        self.log.follow(plan.adapter.agent, plan.redactor)

    def now(self) -> int:
        """Return the microseconds since the recording began; 0 before."""
        return (time.monotonic_ns() - self._started) // 1000 if self._is_begun else 0

    # -- the journal

    def begin(self) -> None:
        """Begin the recording before the first record; later calls do nothing."""
        if self._is_begun:
            return
        self._is_begun = True
        self._started, started_at = time.monotonic_ns(), time.time_ns() // 1_000_000
        self.header = structs.replace(self.plan.header, started_at=started_at)
        self.normalizer.begin_at(started_at)
        problems = self._open_journal()
        self._log_start()
        for message in (*problems, *self._deferred_notes):
            self.note(message)
        self._deferred_notes.clear()

    def _open_journal(self) -> Sequence[str]:
        """Create the journal. Returns the warning if that fails."""
        path = self.plan.journal_path
        if path is None:
            return ()
        try:
            self._journal = JournalWriter(path, self.header)
        except OSError as error:
            self.log.write("no_journal", level=logging.WARNING, reason=str(error))
            return (f"this run has no journal: {path}: {error.strerror or error}; slow readers may lose events",)
        self._journal_path = path
        self._builder.bounded = True
        return ()

    def _log_start(self) -> None:
        plan, path = self.plan, self.journal_path
        journal = None if path is None else str(path)
        self.log.write(
            "run_started", protocol=plan.protocol.name, model=plan.options.model, cwd=plan.cwd, journal=journal
        )

    @property
    def journal_path(self) -> Path | None:
        """Path of the journal, also before it is created; None without one."""
        return self._journal_path if self._is_begun else self.plan.journal_path

    def record_sent(self, data: bytes) -> None:
        """Record data that was written to the agent. It produces no events: the agent reports its effect."""
        self._append(self._new_record(Kind.STDIN, self.plan.redactor.mask_sent(data)))

    def _new_record(self, kind: Kind, payload: bytes) -> Record:
        if kind is Kind.CONTROL or kind is Kind.ACTION:  # secrets in the agent's output were masked when it was read
            payload = self.plan.redactor.mask(payload)
        return Record(kind, self.now(), payload)

    def _append(self, record: Record) -> None:
        journal = self._journal
        if journal is not None:
            try:
                journal.append(record)
            except OSError as error:
                self._drop_journal(journal, error)

    def _drop_journal(self, journal: JournalWriter, error: OSError) -> None:
        self._retain_texts(journal)
        journal.close()
        self._journal = None
        reason = error.strerror or error
        self.log.write("journal_ended", level=logging.WARNING, reason=str(reason))
        self.note(f"the journal {journal.path} ends here: {reason}; slow readers may lose events from now on")

    def _retain_texts(self, journal: JournalWriter) -> None:
        """Keep the messages in memory, because the journal will not be readable later."""
        source, new_codec = journal.path if journal.is_in_place else journal.descriptor_path, self._new_codec
        self._builder.retain_texts(lambda: derive_events(source, new_codec))

    def _complete_journal(self) -> Path | None:
        journal = self._journal
        if journal is None or journal.is_in_place:
            return None if journal is None else journal.path
        self._retain_texts(journal)
        return None

    # -- events

    def record(self, kind: Kind, payload: bytes) -> tuple[list[AgentEvent], Sequence[Effect]]:
        """Append a record. Returns its events, which are not published yet, and the effects that the codec requests."""
        normalizer = self.normalizer
        events = self._feed(kind, payload)
        while edits := normalizer.held_edits:
            cwd = self.plan.cwd
            diff = diff_of_edits(edits, self.header.codec.cwd, read_files((edit.path for edit in edits), cwd))
            preview = encode(Control("preview", cut_diff(diff) or ""))
            events += self._feed(Kind.CONTROL, preview)
        return events, normalizer.take_effects() if normalizer.effects else ()

    def _feed(self, kind: Kind, payload: bytes) -> list[AgentEvent]:
        record = self._new_record(kind, payload)
        events = self.normalizer.feed(record)
        masks = self.normalizer.masks.take()
        if masks:  # before the record, so that no reader derives its texts without them
            self._append(Record(Kind.CONTROL, record.at, encode(Control("masks", masks=masks))))
        self._append(record)
        return events

    def add_observer(self, observe: Callable[[Sequence[AgentEvent]], None]) -> None:
        """Call `observe` with the events of each record, after the readers and the callbacks."""
        self._delivery.observers.append(observe)

    def note(self, message: str) -> None:
        """Publish a warning of agent-mux as an event."""
        if not self._is_begun:
            self._deferred_notes.append(message)
        elif self._journal is not None:
            self.publish(self.record(Kind.CONTROL, encode(Control("note", message)))[0])  # also in derived events
        else:
            self.publish([self._warning(message)])

    def report_error(self, code: ErrorCode, message: str) -> None:
        """Publish an error of the consumer's code as an event; the run continues."""
        self.publish(self.record(Kind.CONTROL, encode(Control("note", message, code=code)))[0])

    def _loss(self, count: int) -> AgentEvent:
        return self._warning(f"{count} events were lost: this reader was too slow, and the run has no journal")

    def _warning(self, message: str) -> DebugEvent:
        stream = self.plan.header.stream
        clean = self.plan.redactor.mask_text(message)
        return DebugEvent(stream.run_id, stream.agent, self.normalizer.assembler.now, "warn", clean)

    @property
    def event_count(self) -> int:
        """Number of published events."""
        return self.window.end

    @property
    def bytes_in_memory(self) -> int:
        """About how much memory the events for readers take."""
        return self.window.bytes_in_memory

    def read(self, start: int, *, is_internal: bool = False) -> EventReader:
        """Return a reader of the events from number `start` until the run is over; see `EventWindow.read`."""
        return self.window.read(self._read_journal, start, is_internal=is_internal)

    def _read_journal(self) -> JournalEvents | None:
        if self._journal_path is None or not self._journal_path.exists():
            return None
        journal = JournalEvents(self._journal_path, self._new_codec)
        is_own = journal.header.identity == self.header.identity
        return journal if is_own else None  # the file was replaced by another run's journal

    # -- the end

    @property
    def reported_changes(self) -> list[ChangedFile]:
        """The changed files that the agent's events report."""
        return self._builder.reported_changes.files

    def result(self, exited: Exited) -> RunResult:
        """Return the result of the run, after its exit record."""
        plan, path, new_codec = self.plan, self._complete_journal(), self._new_codec
        return self._builder.build(
            self.normalizer,
            derive=None if path is None else lambda: derive_events(path, new_codec),
            requested_model=plan.options.model,
            fail_on=plan.options.fail_on,
            run_id=plan.run_id,
            agent=plan.adapter.agent,
            exit_code=exited.code,
            signal=exited.signal,
            duration_ms=self.normalizer.assembler.now - self.header.started_at,  # to the last record, as derived events
            tags=plan.header.tags,
            journal=str(path) if path is not None else None,
        )

    def close(self) -> None:
        """Close the journal and the stream of events."""
        if self._journal is not None:
            self._journal.close()
        self.window.close()
