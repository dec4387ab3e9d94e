"""Records to events, with the same code live and derived: framing, codec and assembler in sequence.

The live runner feeds each record as it happens and performs the effects. Derivation feeds the records of a journal and
ignores the effects. The normalizer has no clock and performs no I/O, so both produce the same events, byte for byte.
"""

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from agent_mux.assembler import Cause, Ending, OpenInteraction, StreamAssembler, Verdict
from agent_mux.events import AgentEvent
from agent_mux.journal.records import Control, Exited, Header, Kind, Record, decode_action, decode_control, decode_exit
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
    SignalGroup,
    Source,
    Steer,
    WatchesTerminal,
    WriteStdin,
)
from agent_mux.sdk.facts import Ignored, Note, Retrying, Unknown
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


class Normalizer:
    """Converts the records of one run to events. `effects` collects what the codec requests.

    Each process, the first and those of retries, has its own codec: for `context`, else for the context in the header.
    `forgiving`: a line for which the codec raises becomes an unknown line instead of an error.
    """

    def __init__(
        self,
        header: Header,
        make_codec: Callable[[CodecContext], Codec],
        *,
        context: CodecContext | None = None,
        forgiving: bool = True,
    ) -> None:
        self._forgiving = forgiving
        self._make_codec = partial(make_codec, context or header.codec)
        self._framing = header.framing
        self._started_at = header.started_at
        self._debug = header.codec.debug
        self._observing = header.observing
        prompt = header.codec.prompt
        self._has_first_prompt = prompt is None or bool(prompt.strip())  # None: the prompt is not passed by the codec
        self._assembler = StreamAssembler(header.stream)
        self.has_pending = self._assembler.has_pending
        """Returns whether the agent waits for an answer, faster than `pending`."""
        self._start_codec()
        self._keeps_blanks = header.framing == "chunks"
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
        self.ledger = Ledger()
        self.effects: list[Effect] = []
        self.verdict: Verdict | None = None
        self.verdict_so_far: Verdict | None = None
        """Verdict of the last attempt, after which another attempt may follow."""

    def _start_codec(self) -> None:
        """Create the codec and the framers for a new process."""
        self._codec = self._make_codec()
        self._framers: dict[Source, Framer] = {
            Source.STDOUT: new_framer(self._framing),
            Source.STDERR: LineFramer(),
            Source.STDIN: new_framer(self._framing),
        }
        self._stdout = self._framers[Source.STDOUT]
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
        """Process one record and return the resulting events."""
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

    def cut_off(self, at: int) -> list[AgentEvent]:
        """Return the events that close the stream of records without an exit, whose writer was killed at time `at`."""
        self._assembler.now = self._started_at + at // 1000
        self._finish_lines()
        self.verdict = self._assembler.end(self._ending(Exited(), is_lost=True))
        return self._assembler.drain()

    # -- lines

    def _receive_lines(self, source: Source, lines: Iterable[bytes]) -> None:
        receive, dispatch, debug, keeps_blanks = self._codec.receive, self._dispatch, self._debug, self._keeps_blanks
        self._is_counting = source is STDOUT
        count = 0
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
            for step in steps:
                dispatch[step.__class__](step)
        if self._is_counting:
            self.ledger.lines += count
            self._is_counting = False
        if debug:
            self._assembler.show_raw(None)

    def _apply(self, method: str, steps: Iterable[CodecOutput]) -> None:
        for step in self._outputs(method, steps):
            self._dispatch[step.__class__](step)

    def _outputs(self, method: str, steps: Iterable[CodecOutput]) -> tuple[CodecOutput, ...]:
        """Return the outputs of a codec's method as a tuple. Report a value that is no collection of outputs."""
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
        self._apply("request", steps)

    def _handle_control(self, record: Record) -> None:
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
            case "pause":
                self._assembler.pause()
            case "resume":
                self._assembler.resume()
            case "note":
                self._assembler.receive(Note(control.message, "warn"))
            case "abort" | "timeout" | "inactivity" | "turn_limit" | "budget" | "spawn_error":
                self._cause, self._message = control.what, control.message
            case "interrupt" | "close":
                self._cause = self._cause or control.what

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
        self._assembler.restart(retry)
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


def _unreported(line: bytes) -> Unknown:
    return Unknown("its codec reported nothing", line.decode("utf-8", "replace"))


def _codec_failure(line: bytes, error: Exception) -> Unknown:
    return Unknown(f"its codec failed with {error!r}", line.decode("utf-8", "replace"))
