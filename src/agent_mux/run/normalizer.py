"""Records to events, with the same code live and derived: framing, codec and assembler in sequence.

The live runner feeds each record as it happens and performs the effects. Derivation feeds the records of a journal and
ignores the effects. The normalizer has no clock and performs no I/O, so both produce the same events, byte for byte.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from msgspec.structs import replace

from agent_mux.assembler import (
    PASSED_ON,
    Cause,
    Ending,
    Masks,
    OpenInteraction,
    StreamAssembler,
    StreamContext,
    Verdict,
)
from agent_mux.events import AgentEvent
from agent_mux.journal.records import Control, Exited, Header, Kind, Record, decode_action, decode_control, decode_exit
from agent_mux.redaction import Redactor
from agent_mux.run.edit_preview import diff_of_edits
from agent_mux.run.ledger import Ledger
from agent_mux.sdk.codec import (
    STDOUT,
    Accept,
    AnyAction,
    CloseStdin,
    Codec,
    CodecContext,
    CodecOutput,
    Effect,
    Exit,
    Refuse,
    Send,
    SetModel,
    SignalGroup,
    Source,
    Steer,
    WatchesTerminal,
    WriteStdin,
)
from agent_mux.sdk.facts import ApprovalRequested, FileEdit, Ignored, Note, RecoverableError, Retrying, Unknown
from agent_mux.sdk.framing import Framer, LineFramer, new_framer

STDERR_TAIL_BYTES = 8192
MAX_RAW_SHOWN = 2000
STDOUT_RECORD = Kind.STDOUT


class _Dispatch(dict[type, Callable[[Any], None]]):
    """Handlers by class of output, with one for objects that a codec must not return."""

    def __init__(self, handlers: Mapping[type, Callable[[Any], None]], *, otherwise: Callable[[Any], None]) -> None:
        super().__init__(handlers)
        self._otherwise = otherwise

    def __missing__(self, kind: type) -> Callable[[Any], None]:
        return self._otherwise


class _ApprovalHeldError(Exception):
    """The next fact is an approval that is shown with the files on disk, so that the output after it has to wait."""

    def __init__(self, fact: ApprovalRequested) -> None:
        super().__init__(fact.request_id)
        self.fact = fact


class _HeldOutput(NamedTuple):
    """An approval that waits for its diff, and the output after it."""

    fact: ApprovalRequested
    steps: tuple[CodecOutput, ...]
    """The rest of what its line means."""
    lines: Iterator[bytes]
    """The lines after it in the same record."""
    source: Source
    raw: str | None
    """Its line, for events in debug mode."""


class Normalizer:
    """Converts the records of one run to events. `effects` collects what the codec requests.

    Each process, the first and those of retries, has its own codec: for `context`, else for the context in the header.
    `forgiving`: a line for which the codec raises becomes an unknown line instead of an error.
    `passes_texts`: fragments of texts are emitted whole, whatever the limit of the run, and nothing is accumulated.
    """

    def __init__(  # noqa: PLR0913  # most have a default
        self,
        header: Header,
        make_codec: Callable[[CodecContext], Codec],
        *,
        context: CodecContext | None = None,
        forgiving: bool = True,
        redactor: Redactor | None = None,
        passes_texts: bool = False,
    ) -> None:
        """Create the normalizer of a run, or of an attempt of one.

        `redactor`: what hides secrets in texts of several lines, in a live run. None: the journal has what it hid.
        """
        self._forgiving = forgiving
        self._passes_texts = passes_texts
        self._codec_for = make_codec
        self.header = header
        """The header of the run, or the one of its current attempt if it fell back to another agent or model."""
        self._context = context or header.codec
        self._started_at = header.started_at
        self._debug = header.codec.debug
        self._observing = header.observing
        self._cwd = header.codec.cwd
        prompt = header.codec.prompt
        self._has_first_prompt = prompt is None or bool(prompt.strip())  # None: the prompt is not passed by the codec
        self._assembler = StreamAssembler(self._stream_of(header), Masks())
        self.masks = self._assembler.masks
        self.masks.use(redactor, holds=header.framing != "chunks")
        """What was hidden or held back in the texts of the last record."""
        self.has_pending = self._assembler.has_pending
        """Returns whether the agent waits for an answer, faster than `pending`."""
        self._start_codec()
        self._stderr: deque[bytes] = deque()
        self._stderr_size = 0
        self._cause: Cause | None = None
        self._message = ""
        self._prompted_after: int | None = None
        """Number of ended turns when the last prompt was sent; None before the first prompt."""
        self._is_counting = False
        self._dispatch = _Dispatch(
            {
                **self._assembler.handlers,
                **dict.fromkeys((WriteStdin, CloseStdin, SignalGroup, Accept, Refuse), self._collect_effect),
                Ignored: self._count_ignored,
                Unknown: self._report_unknown,
            },
            otherwise=self._report_foreign,
        )
        self._dispatch[ApprovalRequested] = self._open_approval
        self._held: _HeldOutput | None = None
        self.ledger = Ledger()
        self.effects: list[Effect] = []
        self.verdict: Verdict | None = None
        self.next_context: CodecContext | None = None
        """The context for the codec of a fallback, if it has more than its header: in a live run, placeholders."""
        self.verdict_so_far: Verdict | None = None
        """Verdict of the last attempt, after which another attempt may follow."""
        self.changed_files: Sequence[Mapping[str, Any]] | None = None
        """The changed files of the result; None: those that events report."""
        self.worktree: Mapping[str, Any] | None = None
        """The worktree of the result, if the run had one."""

    def _stream_of(self, header: Header) -> StreamContext:
        if not self._passes_texts:
            return header.stream
        return replace(header.stream, max_text_bytes=PASSED_ON, buffered=False)

    def _start_codec(self) -> None:
        """Create the codec and the framers for a new process."""
        framing = self.header.framing
        self._codec = self._codec_for(self._context)
        self._framers: dict[Source, Framer] = {
            Source.STDOUT: new_framer(framing),
            Source.STDERR: LineFramer(),
            Source.STDIN: new_framer(framing),
        }
        self._stdout = self._framers[Source.STDOUT]
        self._keeps_blanks = framing == "chunks"
        self._is_finished = False

    def begin_at(self, started_at: int) -> None:
        """Set the time from which records count, in milliseconds since the epoch. Call it before the first record."""
        self._started_at = self._assembler.now = started_at

    @property
    def assembler(self) -> StreamAssembler:
        """The assembler, for reading the state of the stream."""
        return self._assembler

    @property
    def pending(self) -> tuple[OpenInteraction, ...]:
        """The requests for which the agent waits."""
        return self._assembler.pending

    @property
    def is_busy(self) -> bool:
        """Whether the agent has a prompt that it has not finished."""
        return self._assembler.in_turn or self._prompted_after == self._assembler.turns_ended

    def take_effects(self) -> list[Effect]:
        """Return the effects that the codec requested since the last call."""
        effects, self.effects = self.effects, []
        return effects

    def feed(self, record: Record) -> list[AgentEvent]:
        """Process one record and return the resulting events.

        If it asks to approve edits, the events stop before the approval, until the next record. That should be a
        `preview` with the diff of `held_edits`. Before any other record, the approval is opened with a diff of the
        texts that the agent reports, as in recordings without previews.
        """
        if record.kind is Kind.CONTROL:
            control = decode_control(record)
            if control.what == "masks":
                self.masks.give(control.masks)
                return []
        events = self._feed(record)
        self.masks.end_record()
        return events

    def _feed(self, record: Record) -> list[AgentEvent]:
        if self._held is not None:
            return self._release(record)
        self._assembler.now = self._started_at + record.at // 1000
        kind = record.kind
        if kind is STDOUT_RECORD:  # nearly all records
            self._receive_lines(STDOUT, self._stdout.feed(record.payload))
            return self._assembler.drain()
        match kind:
            case Kind.STDERR:
                self._keep_tail(record.payload)
                self._receive_lines(Source.STDERR, self._framers[Source.STDERR].feed(record.payload))
            case Kind.STDIN:
                if self._observing:
                    self._receive_lines(Source.STDIN, self._framers[Source.STDIN].feed(record.payload))
            case Kind.ACTION:
                self._handle_action(decode_action(record))
            case Kind.CONTROL:
                self._handle_control(record)
            case Kind.EXIT:
                self._handle_exit(record)
            case Kind.HEADER:
                pass
        return self._assembler.drain()

    @property
    def held_edits(self) -> tuple[FileEdit, ...]:
        """The edits of the approval that the next record may show with the files on disk; empty if there is none."""
        return () if self._held is None else self._held.fact.edits

    def _release(self, record: Record) -> list[AgentEvent]:
        """Open the approval that is held, continue with the output after it, and process `record`."""
        control = decode_control(record) if record.kind is Kind.CONTROL else None
        if control is not None and control.what == "preview":
            self._continue_held(control.message)
            return self._assembler.drain()
        while self._held is not None:
            self._continue_held(None)
        return [*self._assembler.drain(), *self._feed(record)]

    def _continue_held(self, diff: str | None) -> None:
        held, self._held = self._held, None
        assert held is not None  # noqa: S101  # checked by the caller
        self._is_counting = held.source is STDOUT
        self._assembler.show_raw(held.raw)
        self._show_approval(held.fact, diff)
        try:
            for step in held.steps:
                self._dispatch[step.__class__](step)
        except _ApprovalHeldError as error:
            self._held = held._replace(fact=error.fact, steps=_steps_after(error.fact, held.steps))
            return
        self._receive_lines(held.source, held.lines)

    def _show_approval(self, fact: ApprovalRequested, diff: str | None) -> None:
        if fact.edits:
            fact = replace(fact, diff=diff or diff_of_edits(fact.edits, self._cwd, {}) or None)
        self._assembler.receive(fact)

    def _open_approval(self, fact: ApprovalRequested) -> None:
        if fact.edits and fact.diff is None:
            raise _ApprovalHeldError(fact)
        self._assembler.receive(fact)

    def cut_off(self, at: int) -> list[AgentEvent]:
        """Return the events that close the stream of records without an exit, whose writer was killed at time `at`."""
        self.masks.is_lost = True
        while self._held is not None:
            self._continue_held(None)
        self._assembler.now = self._started_at + at // 1000
        self._finish_lines()
        self.verdict = self._assembler.end(self._ending(Exited(), is_lost=True))
        return self._assembler.drain()

    # -- lines

    def _receive_lines(self, source: Source, lines: Iterable[bytes]) -> None:
        receive, dispatch, debug, keeps_blanks = self._codec.receive, self._dispatch, self._debug, self._keeps_blanks
        self._is_counting = source is STDOUT
        count = 0
        lines = iter(lines)
        for line in lines:
            if (not line or line.isspace()) and not keeps_blanks:
                continue
            if debug:
                self._assembler.show_raw(line.decode("utf-8", "replace"))
            count += 1
            # The hot path: one lookup and one call per step.
            try:
                steps = receive(line, source) or (_unreported(line),)
                if steps.__class__ is not tuple:
                    steps = tuple(steps)
            except Exception as error:  # a codec that raises loses its line, not the run
                if not self._forgiving:
                    raise
                steps = (_codec_failure(line, error),)
            try:
                for step in steps:
                    dispatch[step.__class__](step)
            except _ApprovalHeldError as error:
                raw = line.decode("utf-8", "replace") if debug else None
                self._held = _HeldOutput(error.fact, _steps_after(error.fact, steps), lines, source, raw)
                break
        self.ledger.lines += count if self._is_counting else 0
        self._is_counting = False
        if debug:
            self._assembler.show_raw(None)

    def _apply(self, method: str, steps: Iterable[CodecOutput]) -> None:
        for step in self._outputs(method, steps):
            try:
                self._dispatch[step.__class__](step)
            except _ApprovalHeldError as error:
                self._show_approval(error.fact, None)

    def _outputs(self, method: str, steps: Iterable[CodecOutput]) -> tuple[CodecOutput, ...]:
        """Return the outputs of a codec's method as a tuple. Report a value that is not a collection of outputs."""
        try:
            return tuple(steps)
        except TypeError as error:
            problem = f"its codec returned {type(steps).__name__} from {method}(), not a tuple of facts and effects"
            if not self._forgiving:
                raise TypeError(problem) from error
            return (Note(problem, "warn"),)

    def _report_foreign(self, step: object) -> None:
        problem = f"its codec returned {type(step).__name__}, which is neither a fact nor an effect"
        if not self._forgiving:
            raise TypeError(problem)
        self._assembler.receive(Note(problem, "warn"))

    def _count_ignored(self, step: Ignored) -> None:
        if self._is_counting:
            self.ledger.ignore(step.kind, step.reason)

    def _report_unknown(self, step: Unknown) -> None:
        if self._is_counting:
            self.ledger.unknown[step.kind] += 1
        self._assembler.receive(Unknown(step.kind, step.raw[:MAX_RAW_SHOWN]))

    def _collect_effect(self, step: Effect) -> None:
        self.effects.append(step)

    def _finish_lines(self) -> None:
        for source, framer in self._framers.items():
            self._receive_lines(source, framer.finish())

    # -- actions, controls and the end

    def _handle_action(self, action: AnyAction) -> None:
        steps = self._outputs("request", self._codec.request(action))
        is_refused = any(isinstance(step, Refuse) for step in steps)
        if not is_refused and (isinstance(action, Send) or (isinstance(action, Steer) and not self.is_busy)):
            self._prompted_after = self._assembler.turns_ended
            if self._cause == "interrupt":
                self._cause = None  # the run continued after the interruption
        if not is_refused and isinstance(action, SetModel):
            self._assembler.use_model(action.model)
        self._apply("request", steps)

    def _handle_control(self, record: Record) -> None:  # noqa: C901  # one case per kind of control
        control = decode_control(record)
        match control.what:
            case "start":
                self._start()
            case "attempt_over":
                self._finish_attempt(control.exited)
                self.verdict_so_far = self._assembler.determine_verdict(self._ending(control.exited))
            case "retry":
                self._begin_retry(control)
            case "quiet" | "resize":
                self._observe_terminal(control)
            case "workspace":
                self._keep_workspace(control)
            case "approval_mode":
                self._assembler.show_requests()
            case "pause":
                self._assembler.pause()
            case "resume":
                self._assembler.resume()
            case "note":
                code, message = control.code, control.message
                self._assembler.receive(Note(message, "warn") if code is None else RecoverableError(code, message))
            case "preview" | "masks":
                pass  # the approval that a preview belongs to is open already; `feed` takes masks
            case cause:
                self._set_cause(cause, control.message)

    def _keep_workspace(self, control: Control) -> None:
        if control.changed_files is not None:  # an empty list: the comparison found no change
            self.changed_files = control.changed_files
        if control.worktree is not None:
            self.worktree = control.worktree

    def _set_cause(self, cause: Cause, message: str) -> None:
        if cause not in {"interrupt", "close"}:
            self._cause, self._message = cause, message
        elif self._cause is None:
            self._cause = cause

    def _start(self) -> None:
        if self._has_first_prompt:
            self._prompted_after = self._assembler.turns_ended
        self._apply("start", self._codec.start())

    def _observe_terminal(self, control: Control) -> None:
        if isinstance(self._codec, WatchesTerminal):
            if control.what == "resize":
                self._apply("resized", self._codec.resized(control.size))
            else:
                self._apply("quiet", self._codec.quiet())

    def _handle_exit(self, record: Record) -> None:
        exited = decode_exit(record)
        self._finish_attempt(exited)
        self.verdict = self._assembler.end(self._ending(exited))

    def _finish_attempt(self, exited: Exited) -> None:
        """Process what a finished process left incomplete, once."""
        if not self._is_finished:
            self._is_finished = True
            self._finish_lines()
            self._apply("finish", self._codec.finish(Exit(exited.code, exited.signal)))

    def _begin_retry(self, control: Control) -> None:
        retry = Retrying(control.attempt, control.max_attempts, control.message, control.delay_ms)
        self._assembler.restart(retry, None if control.header is None else self._stream_of(control.header))
        if control.header is not None:
            self.header = control.header
            self._context = self.next_context or control.header.codec
            self.next_context = None
        self._stderr.clear()
        self._stderr_size = 0
        self._start_codec()

    def _ending(self, exited: Exited, *, is_lost: bool = False) -> Ending:
        return Ending(
            code=exited.code,
            signal=exited.signal,
            stderr=self.stderr_tail,
            cause=self._cause,
            is_lost=is_lost,
            unanswered=self._prompted_after == self._assembler.turns_ended,
            message=self._message,
        )

    def _keep_tail(self, chunk: bytes) -> None:
        self._stderr.append(chunk[-STDERR_TAIL_BYTES:])
        self._stderr_size += len(self._stderr[-1])
        while self._stderr_size - len(self._stderr[0]) >= STDERR_TAIL_BYTES:
            self._stderr_size -= len(self._stderr.popleft())

    @property
    def stderr_tail(self) -> str:
        """The last STDERR_TAIL_BYTES bytes of the agent's standard error, decoded."""
        return b"".join(self._stderr)[-STDERR_TAIL_BYTES:].decode("utf-8", "replace")


def _steps_after(fact: ApprovalRequested, steps: Sequence[CodecOutput]) -> tuple[CodecOutput, ...]:
    return tuple(steps[[step is fact for step in steps].index(True) + 1 :])


def _unreported(line: bytes) -> Unknown:
    return Unknown("its codec reported nothing", line.decode("utf-8", "replace"))


def _codec_failure(line: bytes, error: Exception) -> Unknown:
    return Unknown(f"its codec failed with {error!r}", line.decode("utf-8", "replace"))
