"""Records to events: the same code, live and derived. Framing, codec and assembler in a row; no clock, no I/O.

The live runner feeds it what happens and performs the effects; whoever derives events from a journal feeds it the
same records and leaves the effects alone. Therefore both get the same events, byte for byte.
"""

from collections import deque
from collections.abc import Callable, Iterable
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
    Effect,
    Exit,
    Refuse,
    Send,
    SignalGroup,
    Source,
    Steer,
    Step,
    WatchesTerminal,
    WriteStdin,
)
from agent_mux.sdk.facts import Ignored, Note, Retrying, Unknown
from agent_mux.sdk.framing import Framer, LineFramer, new_framer

STDERR_TAIL_BYTES = 8192
LONGEST_RAW_SHOWN = 2000
PRINTED = Kind.STDOUT
_SOURCES = {Kind.STDOUT: Source.STDOUT, Kind.STDERR: Source.STDERR, Kind.STDIN: Source.STDIN}


class Normalizer:
    """Turns the records of one run into its events. `effects` collects what the codec asks for.

    Each process that speaks, the first and those of retries, gets a codec of its own: for `context`, or else for the
    one in the header. `forgiving`: a codec that raises costs its line, which is shown as unknown, and not the run.
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
        self._has_first_prompt = prompt is None or bool(prompt.strip())  # None: it did not come this way
        self._assembler = StreamAssembler(header.stream)
        self._begin()
        self._keeps_blanks = header.framing == "chunks"
        self._stderr: deque[bytes] = deque()
        self._stderr_size = 0
        self._cause: Cause | None = None
        self._message = ""
        self._asked_at: int | None = None
        self._counted = False
        self._dispatch: dict[type, Callable[[Any], None]] = {
            **self._assembler.handlers,
            **dict.fromkeys((WriteStdin, CloseStdin, SignalGroup, Accept, Refuse), self._effect),
            Ignored: self._ignored,
            Unknown: self._unknown,
        }
        self.ledger = Ledger()
        self.effects: list[Effect] = []
        self.verdict: Verdict | None = None
        self.verdict_so_far: Verdict | None = None
        """Of the last attempt, where another one may follow."""

    def _begin(self) -> None:
        """A process begins to speak."""
        self._codec = self._make_codec()
        self._framers: dict[Source, Framer] = {
            Source.STDOUT: new_framer(self._framing),
            Source.STDERR: LineFramer(),
            Source.STDIN: new_framer(self._framing),
        }
        self._stdout = self._framers[Source.STDOUT]
        self._is_finished = False

    def begin_at(self, started_at: int) -> None:
        """The time that the records count from, in milliseconds since the epoch. Before the first record."""
        self._started_at = self._assembler.now = started_at

    @property
    def assembler(self) -> StreamAssembler:
        """The state of the stream, to look at."""
        return self._assembler

    @property
    def pending(self) -> tuple[OpenInteraction, ...]:
        """What the agent waits for."""
        return self._assembler.pending

    @property
    def is_busy(self) -> bool:
        """The agent has a prompt that it has not dealt with."""
        return self._assembler.in_turn or self._asked_at == self._assembler.turns_ended

    def take_effects(self) -> list[Effect]:
        """What the codec asked for since the last call."""
        effects, self.effects = self.effects, []
        return effects

    def feed(self, record: Record) -> list[AgentEvent]:
        """Take one record, give the events it makes."""
        self._assembler.now = self._started_at + record.at // 1000
        kind = record.kind
        if kind is PRINTED:  # nearly all of them
            self._lines(STDOUT, self._stdout.feed(record.payload))
            return self._assembler.drain()
        match kind:
            case Kind.STDERR:
                self._keep_tail(record.payload)
                self._lines(Source.STDERR, self._framers[Source.STDERR].feed(record.payload))
            case Kind.STDIN:
                if self._observing:
                    self._lines(Source.STDIN, self._framers[Source.STDIN].feed(record.payload))
            case Kind.ACTION:
                self._act(decode_action(record))
            case Kind.CONTROL:
                self._control(record)
            case Kind.EXIT:
                self._exit(record)
            case Kind.HEADER:
                pass
        return self._assembler.drain()

    def cut_off(self, at: int) -> list[AgentEvent]:
        """The records end without an exit: whoever wrote them was killed. Close the stream as such."""
        self._assembler.now = self._started_at + at // 1000
        self._finish_lines()
        self.verdict = self._assembler.end(Ending(signal=9, stderr=self.stderr_tail, cause=self._cause))
        return self._assembler.drain()

    # -- lines

    def _lines(self, source: Source, lines: Iterable[bytes]) -> None:
        receive, dispatch, debug, keeps_blanks = self._codec.receive, self._dispatch, self._debug, self._keeps_blanks
        self._counted = source is STDOUT
        count = 0
        for line in lines:
            if (not line or line.isspace()) and not keeps_blanks:
                continue
            if debug:
                self._assembler.show_raw(line.decode("utf-8", "replace"))
            count += 1
            # The hot path: one look-up and one call per step.
            try:
                steps = receive(line, source) or (_silent(line),)
            except Exception as error:  # a codec must not raise; one that does costs its line, not the run
                if not self._forgiving:
                    raise
                steps = (_broken(line, error),)
            for step in steps:
                dispatch[step.__class__](step)
        if self._counted:
            self.ledger.lines += count
            self._counted = False
        if debug:
            self._assembler.show_raw(None)

    def _apply(self, steps: Iterable[Step]) -> None:
        for step in steps:
            self._dispatch[step.__class__](step)

    def _ignored(self, step: Ignored) -> None:
        if self._counted:
            self.ledger.ignore(step.kind, step.reason)

    def _unknown(self, step: Unknown) -> None:
        if self._counted:
            self.ledger.unknown[step.kind] += 1
        self._assembler.receive(Unknown(step.kind, step.raw[:LONGEST_RAW_SHOWN]))

    def _effect(self, step: Effect) -> None:
        self.effects.append(step)

    def _finish_lines(self) -> None:
        for source, framer in self._framers.items():
            self._lines(source, framer.finish())

    # -- what the consumer and the mux did, and the end

    def _act(self, action: AnyAction) -> None:
        steps = tuple(self._codec.request(action))
        is_refused = any(isinstance(step, Refuse) for step in steps)
        if not is_refused and (isinstance(action, Send) or (isinstance(action, Steer) and not self.is_busy)):
            self._asked_at = self._assembler.turns_ended
            if self._cause == "interrupt":
                self._cause = None  # the run went on after the interruption
        self._apply(steps)

    def _control(self, record: Record) -> None:
        control = decode_control(record)
        match control.what:
            case "start":
                self._start()
            case "attempt_over":
                self._finish_attempt(control.exited)
                self.verdict_so_far = self._assembler.determine_verdict(self._ending(control.exited))
            case "retry":
                self._try_again(control)
            case "quiet" | "resize":
                self._look_at_terminal(control)
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
            self._asked_at = self._assembler.turns_ended
        self._apply(self._codec.start())

    def _look_at_terminal(self, control: Control) -> None:
        if isinstance(self._codec, WatchesTerminal):
            self._apply(self._codec.resized(control.size) if control.what == "resize" else self._codec.quiet())

    def _exit(self, record: Record) -> None:
        exited = decode_exit(record)
        self._finish_attempt(exited)
        self.verdict = self._assembler.end(self._ending(exited))

    def _finish_attempt(self, exited: Exited) -> None:
        """A process is gone: what it left unsaid. Once."""
        if not self._is_finished:
            self._is_finished = True
            self._finish_lines()
            self._apply(self._codec.finish(Exit(exited.code, exited.signal)))

    def _try_again(self, control: Control) -> None:
        retry = Retrying(control.attempt, control.max_attempts, control.message, control.delay_ms)
        self._assembler.restart(retry)
        self._stderr.clear()
        self._stderr_size = 0
        self._begin()

    def _ending(self, exited: Exited) -> Ending:
        return Ending(
            code=exited.code,
            signal=exited.signal,
            stderr=self.stderr_tail,
            cause=self._cause,
            unanswered=self._asked_at == self._assembler.turns_ended,
            message=self._message,
        )

    def _keep_tail(self, chunk: bytes) -> None:
        self._stderr.append(chunk[-STDERR_TAIL_BYTES:])
        self._stderr_size += len(self._stderr[-1])
        while self._stderr_size - len(self._stderr[0]) >= STDERR_TAIL_BYTES:
            self._stderr_size -= len(self._stderr.popleft())

    @property
    def stderr_tail(self) -> str:
        """The end of the agent's standard error."""
        return b"".join(self._stderr)[-STDERR_TAIL_BYTES:].decode("utf-8", "replace")


def _silent(line: bytes) -> Unknown:
    return Unknown("nothing was said about it", line.decode("utf-8", "replace"))


def _broken(line: bytes, error: Exception) -> Unknown:
    return Unknown(f"its codec failed with {error!r}", line.decode("utf-8", "replace"))
