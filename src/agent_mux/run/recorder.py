"""What a run remembers and tells: each record into the journal and through the normalizer, its events to who listens.

It begins when the run has a place, or is over without one: a run that waits has no file. All times count from there:
those of the records and events, the time limit, the duration. What was noted before is told then.

Nothing here acts on the agent. A run is never taken down by its journal, nor by who listens.
"""

import logging
import time
from collections.abc import Sequence
from pathlib import Path

from msgspec import structs

from agent_mux.events import AgentEvent, DebugEvent
from agent_mux.journal.file import JournalWriter
from agent_mux.journal.records import Control, Exited, Kind, Record, encode
from agent_mux.run.derivation import JournalEvents, derive_events
from agent_mux.run.log import RunLog
from agent_mux.run.normalizer import Normalizer
from agent_mux.run.plan import RunPlan
from agent_mux.run.readers import EventReader, EventWindow, Listeners
from agent_mux.run.result import ResultBuilder, RunResult, Worktree


class RunRecorder:
    """The records of one run and what is made of them."""

    def __init__(self, plan: RunPlan) -> None:
        self.plan = plan
        self.header = plan.header
        """As planned, and with the time at which the recording began."""
        self.worktree: Worktree | None = None
        """What became of it, if the run had one."""
        self.normalizer = Normalizer(plan.header, plan.new_codec, context=plan.context)
        self.listeners = Listeners(self.note)
        self.log = RunLog(plan.run_id, plan.adapter.agent, plan.redactor, self.note)
        self._window = EventWindow(plan.options.event_buffer_size, self._loss)
        self._builder = ResultBuilder(collect=plan.options.collect_events)
        self._started = 0
        self._journal: JournalWriter | None = None
        self._is_begun = False
        self._noted: list[str] = []
        """Before the beginning."""
        self._journal_path: Path | None = None
        """Set when there is a file that this run began: never somebody else's."""

    def now(self) -> int:
        """Microseconds since the recording began; 0 before."""
        return (time.monotonic_ns() - self._started) // 1000 if self._is_begun else 0

    # -- the journal

    def begin(self) -> None:
        """Before the first record. Twice is once."""
        if self._is_begun:
            return
        self._is_begun = True
        self._started, started_at = time.monotonic_ns(), time.time_ns() // 1_000_000
        self.header = structs.replace(self.plan.header, started_at=started_at)
        self.normalizer.begin_at(started_at)
        refused = self._open_journal()
        self._tell_of_beginning()
        for message in (*refused, *self._noted):
            self.note(message)
        self._noted.clear()

    def _open_journal(self) -> Sequence[str]:
        """What there is to say about it."""
        path = self.plan.journal_path
        if path is None:
            return ()
        try:
            self._journal = JournalWriter(path, self.header)
        except OSError as error:
            self.log.tell("no_journal", level=logging.WARNING, reason=str(error))
            return (f"this run has no journal: {path}: {error.strerror or error}; slow readers may lose events",)
        self._journal_path = path
        self._builder.bounded = True
        return ()

    def _tell_of_beginning(self) -> None:
        plan, path = self.plan, self.journal_path
        journal = None if path is None else str(path)
        self.log.tell(
            "run_started", protocol=plan.protocol.name, model=plan.options.model, cwd=plan.cwd, journal=journal
        )

    @property
    def journal_path(self) -> Path | None:
        """Where the journal is, or will be; None when there is none."""
        return self._journal_path if self._is_begun else self.plan.journal_path

    def sent(self, data: bytes) -> None:
        """The agent was sent this. It makes no events: what it means is told by the agent."""
        self._keep(Kind.STDIN, self.plan.redactor.mask_sent(data))

    def _keep(self, kind: Kind, payload: bytes) -> Record:
        if kind is Kind.CONTROL or kind is Kind.ACTION:  # what the agent prints had its secrets hidden when it was read
            payload = self.plan.redactor.mask(payload)
        record = Record(kind, self.now(), payload)
        journal = self._journal
        if journal is not None:
            try:
                journal.append(record)
            except OSError as error:
                self._give_up(journal, error)
        return record

    def _give_up(self, journal: JournalWriter, error: OSError) -> None:
        self._keep_texts(journal)
        journal.close()
        self._journal = None
        why = error.strerror or error
        self.log.tell("journal_ended", level=logging.WARNING, reason=str(why))
        self.note(f"the journal {journal.path} ends here: {why}; slow readers may lose events from now on")

    def _keep_texts(self, journal: JournalWriter) -> None:
        """Nobody will be able to read them later."""
        source, new_codec = journal.path if journal.is_in_place else journal.open_file, self.plan.new_codec
        self._builder.unbind(lambda: list(derive_events(source, new_codec)))

    def _whole_journal(self) -> Path | None:
        journal = self._journal
        if journal is None or journal.is_in_place:
            return None if journal is None else journal.path
        self._keep_texts(journal)
        return None

    # -- events

    def take(self, kind: Kind, payload: bytes) -> list[AgentEvent]:
        """Something happened: journal it, and make events of it. Nobody is told of them yet."""
        return self.normalizer.feed(self._keep(kind, payload))

    def tell(self, events: Sequence[AgentEvent]) -> None:
        """Everybody who listens."""
        self._builder.observe(events)
        self.log.observe(events)
        self._window.append(events)
        self.listeners.call(events)

    def note(self, message: str) -> None:
        """A warning of ours among the events."""
        if not self._is_begun:
            self._noted.append(message)
        elif self._journal is not None:
            self.tell(self.take(Kind.CONTROL, encode(Control("note", message))))  # for derived events, too
        else:
            self.tell([self._warning(message)])

    def _loss(self, count: int) -> AgentEvent:
        return self._warning(f"{count} events were lost: this reader was too slow, and there is no journal to read")

    def _warning(self, message: str) -> DebugEvent:
        stream = self.plan.header.stream
        clean = self.plan.redactor.mask_text(message)
        return DebugEvent(stream.run_id, stream.agent, self.normalizer.assembler.now, "warn", clean)

    @property
    def event_count(self) -> int:
        """The number of events that were told."""
        return self._window.end

    def read(self, start: int) -> EventReader:
        """The events from number `start`, until the run is over."""
        return self._window.read(self._read_journal, start)

    def _read_journal(self) -> JournalEvents | None:
        if self._journal_path is None or not self._journal_path.exists():
            return None
        journal = JournalEvents(self._journal_path, self.plan.new_codec)
        return journal if journal.header == self.header else None  # somebody put another in its place

    # -- the end

    def result(self, exited: Exited) -> RunResult:
        """What the run came to, after its exit record."""
        plan, path, normalizer = self.plan, self._whole_journal(), self.normalizer
        assembler, verdict = normalizer.assembler, normalizer.verdict
        assert verdict is not None  # noqa: S101  # the exit record makes it
        return self._builder.build(
            verdict,
            stderr=normalizer.stderr_tail,
            derive=None if path is None else lambda: list(derive_events(path, plan.new_codec)),
            run_id=plan.run_id,
            agent=plan.adapter.agent,
            model=assembler.model or plan.options.model,
            session_id=assembler.session_id,
            exit_code=exited.code,
            signal=exited.signal,
            duration_ms=assembler.now - self.header.started_at,  # of the last record: as it is derived later
            ledger=normalizer.ledger,
            structured_output=assembler.structured_output,
            tags=plan.header.tags,
            journal=str(path) if path is not None else None,
            worktree=self.worktree,
        )

    def close(self) -> None:
        """No more records."""
        if self._journal is not None:
            self._journal.close()
        self._window.close()
