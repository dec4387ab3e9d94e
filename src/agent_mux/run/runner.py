"""Carries out one run: starts the agent, performs effects, records what crosses the boundary, ends everything.

The only place that performs effects. Every wait is bounded; the run itself is shielded from cancellation, which it
takes as an order to abort: the process is never left behind.
"""

import logging
import signal
import time
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path

import anyio
import anyio.abc
from anyio import lowlevel

from agent_mux.actions import Answer, AnyAction, Approve, Cancel, Close, Deny, Interrupt, Send, Steer
from agent_mux.adapter import TerminalSize
from agent_mux.assembler import Cause, OpenInteraction
from agent_mux.effects import Accept, CloseStdin, Delivery, Effect, Refuse, SignalGroup, WriteStdin
from agent_mux.errors import AgentMuxError, CapabilityError
from agent_mux.events import AgentEvent, DebugEvent, StepStartEvent, TurnStartEvent
from agent_mux.events.mending import mended
from agent_mux.process.child import Child, start_child
from agent_mux.process.reaper import Reaper
from agent_mux.process.reasons import Attempt, why_not_started
from agent_mux.process.terminal import TerminalChild, start_at_terminal
from agent_mux.redaction import RedactedStream
from agent_mux.run.answers import Answers
from agent_mux.run.budget import Budget
from agent_mux.run.derive import JournalEvents, derive_events
from agent_mux.run.ending import end_agent, settle, within
from agent_mux.run.interaction import InteractionChannel
from agent_mux.run.journal import JournalWriter
from agent_mux.run.listeners import Listeners
from agent_mux.run.normalizer import Normalizer
from agent_mux.run.outbox import Outbox
from agent_mux.run.places import Ticket
from agent_mux.run.plan import RunPlan
from agent_mux.run.records import Control, Exited, Kind, Record, encode
from agent_mux.run.result import ResultBuilder, RunResult
from agent_mux.run.retry import Attempts, Retry
from agent_mux.run.rulings import Unasked
from agent_mux.run.state import StateMachine
from agent_mux.run.tempdir import private_files
from agent_mux.run.window import EventWindow
from agent_mux.telemetry.logs import RunLog

_SPOKEN = (Send, Steer, Approve, Deny, Answer)
"""What has to be said to the agent."""
QUIET_LOOK = 0.02  # seconds between two looks whether the agent is quiet
LONGEST_HOLD = 0.05  # seconds that the possible beginning of a secret waits for its rest, where there are no lines


class Runner:
    """One run, from start to result."""

    def __init__(self, plan: RunPlan, reaper: Reaper, ticket: Ticket | None = None) -> None:
        """`ticket`: a place among the runs of the client, or the wait for one."""
        options = plan.options
        self.plan = plan
        self.state = StateMachine()
        self.listeners = Listeners(self._note)
        self.window = EventWindow(options.event_buffer_size, self._loss)
        self.interaction = InteractionChannel(
            plan.run_id, lambda: self.normalizer.pending, self.act, self.require_active
        )
        self._answers = Answers(plan.run_id, options, self.interaction, self.listeners)
        self.normalizer = self._new_normalizer()
        self._log = RunLog(plan.run_id, plan.adapter.agent, plan.redactor, self._note)
        self._attempts = Attempts(options.retry_policy)
        self.result: RunResult | None = None
        self.added_environment: dict[str, str] = {}
        """For the agent, on top of what was planned."""
        self.begun = anyio.Event()
        self.done = anyio.Event()
        self._reaper = reaper
        self._ticket = ticket
        self._builder = ResultBuilder(collect=options.collect_events)
        self._journal: JournalWriter | None = None
        self._journal_asked = False
        self._journal_path: Path | None = None
        """Set when there is a file that this run began: never somebody else's."""
        self._started = time.monotonic_ns()
        self._child: Child | None = None
        self._outbox = self._new_outbox()
        self._streams = self._new_streams()
        self._held = anyio.Event()
        self._stopping = anyio.Event()
        self._ended_streams = 0
        self._output_complete = anyio.Event()
        self._last_output = time.monotonic()
        self._budget = Budget(options)
        self._unasked = None if options.policy is None else Unasked(options.policy, plan.cwd)
        self._model_calls_left = None if plan.spawn.counts_turns else options.max_turns
        self._told_of_loss = False
        self._refusal: Refuse | None = None
        self._delivery: Delivery = "applied"
        self._is_closing = False
        self._tasks: anyio.abc.TaskGroup | None = None

    def _new_outbox(self) -> Outbox:
        redactor, is_json = self.plan.redactor, self.plan.protocol.framing != "chunks"
        return Outbox(
            on_written=lambda data: self._append(Record(Kind.STDIN, self._now(), redactor.mask_sent(data))),
            on_lost=self._lost,
            unmask=lambda data: redactor.restore(data, is_json=is_json),
        )

    def _new_streams(self) -> dict[Kind, RedactedStream]:
        return {kind: RedactedStream(self.plan.redactor) for kind in (Kind.STDOUT, Kind.STDERR)}

    def _lost(self, data: bytes) -> None:
        """Somebody was told that this is on its way."""
        if not self._stopping.is_set() and not self._told_of_loss:
            self._told_of_loss = True
            self._note(f"{self.plan.adapter.agent} reads no more: what was sent last is lost ({len(data)} bytes)")

    def _new_normalizer(self) -> Normalizer:
        plan = self.plan
        return Normalizer(plan.header, plan.new_codec(plan.context), new_codec=lambda: plan.new_codec(plan.context))

    # -- life

    async def execute(self) -> None:
        """Run to the end. A cancellation from outside becomes an abort."""
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._shielded)
                try:
                    await self.done.wait()
                except anyio.get_cancelled_exc_class():
                    self.stop("abort")
                    raise
        finally:
            self.window.close()

    async def _shielded(self) -> None:
        with anyio.CancelScope(shield=True):
            try:
                self._open_journal()
                self._tell_of_start()
                if await self._is_admitted():
                    await self._with_files()
                else:
                    self._finish(Exited())
            finally:
                if self._ticket is not None:
                    self._ticket.leave()
                self._reaper.release(self.plan.run_id)
                if self._journal is not None:
                    self._journal.close()
                self.begun.set()
                self.done.set()
                self.window.close()

    def _tell_of_start(self) -> None:
        plan, path = self.plan, self._journal_path
        journal = None if path is None else str(path)
        self._log.tell(
            "run_started", protocol=plan.protocol.name, model=plan.options.model, cwd=plan.cwd, journal=journal
        )

    async def _is_admitted(self) -> bool:
        """Wait for a place. False: the run is ended before it has one."""
        if self._ticket is None:
            return not self._stopping.is_set()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._cancel_when_stopping, tasks.cancel_scope)
            await self._ticket.wait()
            tasks.cancel_scope.cancel()
        return self._ticket.is_held and not self._stopping.is_set()

    async def _cancel_when_stopping(self, scope: anyio.CancelScope) -> None:
        await self._stopping.wait()
        scope.cancel()

    async def _with_files(self) -> None:
        spawn = self.plan.spawn
        try:
            self._reaper.watch(self.plan.run_id, self.plan.temp_dir)
            with private_files(self.plan.temp_dir, spawn.files):
                for note in spawn.notes:
                    self.record(Kind.CONTROL, encode(Control("note", note)))
                self._reaper.await_ready()
                await self._attempt_until_done()
        except (OSError, AgentMuxError) as error:
            if self._child is not None:
                raise
            self._never_started(error)

    async def _attempt_until_done(self) -> None:
        while True:
            self._child = child = self._start()
            self._reaper.began(self.plan.run_id, child.pid, child.process.started if child.process is not None else 0)
            self._log.tell("spawned", program=self.plan.spawn.argv[0], pid=child.pid)
            exited = await self._drive(child)
            retry = self._retry_after(exited)
            if retry is None or await self._is_stopped_within(retry):
                self._finish(exited)
                return
            self._child = None
            self._forget_attempt()

    def _retry_after(self, exited: Exited) -> Retry | None:
        if self.plan.options.retry_policy is None or self._stopping.is_set():
            return None
        self.control(Control("attempt_over", exited=exited))
        verdict = self.normalizer.verdict_so_far
        return None if verdict is None else self._attempts.after(verdict)

    async def _is_stopped_within(self, retry: Retry) -> bool:
        """Tell of the next attempt and wait for it. True: somebody ended the run meanwhile."""
        delay = round(retry.delay * 1000)
        self.control(
            Control("retry", retry.reason, attempt=retry.attempt, max_attempts=retry.max_attempts, delay_ms=delay)
        )
        return await within(retry.delay, self._stopping.wait())

    def _forget_attempt(self) -> None:
        self._outbox = self._new_outbox()
        self._streams = self._new_streams()
        self._ended_streams = 0
        self._output_complete = anyio.Event()
        self._last_output = time.monotonic()

    def _start(self) -> Child:
        plan, spawn = self.plan, self.plan.spawn
        environ = {**plan.environ, **self.added_environment}
        if spawn.terminal is not None:
            return start_at_terminal(spawn.argv, run_id=plan.run_id, env=environ, cwd=plan.cwd, size=spawn.terminal)
        return start_child(spawn.argv, run_id=plan.run_id, env=environ, cwd=plan.cwd, stdin=spawn.stdin == "pipe")

    async def _drive(self, child: Child) -> Exited:
        try:
            async with anyio.create_task_group() as tasks:
                self._tasks = tasks
                tasks.start_soon(self._read, child.read_stdout, Kind.STDOUT)
                tasks.start_soon(self._read, child.read_stderr, Kind.STDERR)
                tasks.start_soon(self._outbox.deliver, child)
                tasks.start_soon(self._stop_when_told, child)
                self._start_timers(tasks)
                if self.state.state == "spawned":
                    self.state.move("running")
                self._first_input()
                await child.wait()
                await settle(child, self._output_complete)
                tasks.cancel_scope.cancel()
        finally:
            child.close_pipes()  # looking for processes takes descriptors, and there may be no others left
            child.signal_all(signal.SIGKILL)
            code = await child.wait()
            child.close()
        self._release()
        return Exited(code=code) if code >= 0 else Exited(signal=-code)

    def _first_input(self) -> None:
        text = self.plan.spawn.stdin_text
        if text is not None:
            self._perform([WriteStdin(text.encode("utf-8", "surrogateescape")), CloseStdin()])
        self.record(Kind.CONTROL, encode(Control("start")))
        self.begun.set()

    def _never_started(self, error: OSError | AgentMuxError) -> None:
        plan = self.plan
        attempt = Attempt(plan.spawn.argv, plan.environ, plan.cwd)
        reason = why_not_started(error, attempt) if isinstance(error, OSError) else str(error)
        message = f"{attempt.program} could not be started in {plan.cwd}: {reason}"
        self._log.tell("not_started", level=logging.ERROR, reason=message)
        self.record(Kind.CONTROL, encode(Control("spawn_error", message)))
        self._finish(Exited())

    def _finish(self, exited: Exited) -> None:
        self.record(Kind.EXIT, encode(exited))
        verdict = self.normalizer.verdict
        assert verdict is not None  # noqa: S101  # the exit record makes it
        self.state.finish(verdict.exit_reason)
        plan, path = self.plan, self._finished_journal()
        self.result = self._builder.build(
            verdict,
            stderr=self.normalizer.stderr_tail,
            derive=None if path is None else lambda: list(derive_events(path, plan.new_codec)),
            run_id=plan.run_id,
            agent=plan.adapter.agent,
            model=self.normalizer.assembler.model or plan.options.model,
            session_id=self.normalizer.assembler.session_id,
            exit_code=exited.code,
            signal=exited.signal,
            duration_ms=self._now() // 1000,
            ledger=self.normalizer.ledger,
            structured_output=self.normalizer.assembler.structured_output,
            tags=plan.header.tags,
            journal=str(path) if path is not None else None,
        )
        self._log.ended(self.result)

    @property
    def journal_path(self) -> Path | None:
        """Where the run's recording is, or will be; None when there is none."""
        return self._journal_path if self.begun.is_set() else self.plan.journal_path

    def _finished_journal(self) -> Path | None:
        """Where the run's recording is; None when there is none, or no whole one."""
        journal = self._journal
        if journal is None or journal.is_in_place:
            return None if journal is None else journal.path
        self._keep_texts(journal)
        return None

    def _keep_texts(self, journal: JournalWriter) -> None:
        """Nobody will be able to read them later."""
        source, new_codec = journal.path if journal.is_in_place else journal.open_file, self.plan.new_codec
        self._builder.unbind(lambda: list(derive_events(source, new_codec)))

    # -- records

    def _now(self) -> int:
        return (time.monotonic_ns() - self._started) // 1000

    def record(self, kind: Kind, payload: bytes) -> None:
        """Something happened: journal it, make events of it, perform what the codec asks for, see what waits."""
        if kind is Kind.CONTROL or kind is Kind.ACTION:
            payload = self.plan.redactor.mask(payload)
        record = Record(kind, self._now(), payload)
        self._append(record)
        events = self.normalizer.feed(record)
        if events:
            self._publish(events)
        if self.normalizer.effects:
            self._perform(self.normalizer.take_effects())
        if kind is not Kind.EXIT:
            self._answer_by_policy()

    def _publish(self, events: list[AgentEvent]) -> None:
        if self.state.state == "interrupted" and any(isinstance(event, TurnStartEvent) for event in events):
            self.state.move("running")  # with a prompt that was queued
        self._builder.see(events)
        self._log.see(events)
        self.window.append(events)
        self.listeners.call(events)
        if self._model_calls_left is not None:
            self._count_model_calls(self._model_calls_left, events)
        if self._budget.is_set:
            self._keep_budget(events)
        if self._unasked is not None:
            for warning in self._unasked.see(events):
                self._note(warning)

    def _count_model_calls(self, left: int, events: list[AgentEvent]) -> None:
        left -= sum(isinstance(event, StepStartEvent) and event.subagent_id is None for event in events)
        self._model_calls_left = left
        if left < 0:
            self.stop("turn_limit")

    def _keep_budget(self, events: list[AgentEvent]) -> None:
        spent = self._budget.see(events)
        if spent is not None:
            self.stop("budget", spent)
        unkept = self._budget.unkept()
        if unkept is not None:
            self._note(unkept)

    def _open_journal(self) -> None:
        """Once, before the first record: that may be an abort that comes before the run begins."""
        path = self.plan.journal_path
        if path is None or self._journal_asked:
            return
        self._journal_asked = True
        try:
            self._journal = JournalWriter(path, self.plan.header)
            self._journal_path = path
            self._builder.bounded = True
        except OSError as error:
            self._log.tell("no_journal", level=logging.WARNING, reason=str(error))
            self._note(f"this run has no journal: {path}: {error.strerror or error}; slow readers may lose events")

    def _append(self, record: Record) -> None:
        if self._journal is None:
            return
        try:
            self._journal.append(record)
        except OSError as error:
            # A run is never taken down by its journal.
            journal = self._journal
            self._keep_texts(journal)
            journal.close()
            self._journal = None
            why = error.strerror or error
            self._log.tell("journal_ended", level=logging.WARNING, reason=str(why))
            self._note(f"the journal {journal.path} ends here: {why}; slow readers may lose events from now on")

    def open_journal(self) -> JournalEvents | None:
        """The events from the first, for a reader that fell behind; None when there is no journal."""
        if self._journal_path is None or not self._journal_path.exists():
            return None
        journal = JournalEvents(self._journal_path, self.plan.new_codec)
        return journal if journal.header == self.plan.header else None  # somebody put another in its place

    def _note(self, message: str) -> None:
        self._open_journal()
        if self._journal is not None:
            self.control(Control("note", message))  # so that it is among the derived events, too
        else:
            self._publish([self._warning(message)])

    def _loss(self, count: int) -> AgentEvent:
        return self._warning(f"{count} events were lost: this reader was too slow, and there is no journal to read")

    def _warning(self, message: str) -> DebugEvent:
        stream = self.plan.header.stream
        clean = self.plan.redactor.mask_text(message)
        return DebugEvent(stream.run_id, stream.agent, self.normalizer.assembler.now, "warn", clean)

    # -- the agent's pipes

    async def _read(self, stream: Callable[[Callable[[bytes], None]], Awaitable[None]], kind: Kind) -> None:
        redacted = self._streams[kind]

        def take(chunk: bytes) -> None:
            self._last_output = time.monotonic()
            clean = redacted.feed(chunk)
            if clean:
                self.record(kind, clean)
            if redacted.is_holding:
                self._held.set()

        await stream(take)
        self._release(kind)
        self._ended_streams += 1
        if self._ended_streams == 2:  # stdout and stderr
            self._output_complete.set()

    def _release(self, *kinds: Kind) -> None:
        """What was held back because it could begin a secret goes on its way: of these streams, or of all."""
        for kind in kinds or tuple(self._streams):
            rest = self._streams[kind].flush()
            if rest:
                self.record(kind, rest)

    async def _release_soon(self) -> None:
        """For protocols without lines: an agent may wait for an answer to what is held back."""
        while True:
            await self._held.wait()
            self._held = anyio.Event()
            await anyio.sleep(LONGEST_HOLD)
            self._release(Kind.STDOUT)

    def _perform(self, effects: Iterable[Effect]) -> None:
        for effect in effects:
            match effect:
                case WriteStdin() | CloseStdin():
                    self._outbox.put(effect)
                case SignalGroup(number):
                    if self._child is not None:
                        self._child.signal_group(number)
                case Refuse():
                    self._refusal = effect
                case Accept(delivery):
                    self._delivery = delivery
                case _:
                    raise TypeError(f"no such effect: {effect!r}")

    # -- actions and interactions

    async def act(self, action: AnyAction) -> Delivery:
        """Ask the agent for something. Raises RUN_NOT_ACTIVE after the end, and what the codec refuses."""
        await self.begun.wait()
        self.require_active()
        delivery = self._act(action)
        await lowlevel.checkpoint()
        return delivery

    def _act(self, action: AnyAction) -> Delivery:
        # Nothing may happen between the steps of this: it does not wait.
        if isinstance(action, _SPOKEN) and self._outbox.is_closed and self.plan.protocol.two_way:
            over = f"{self.plan.adapter.agent} listens no more: this run was closed, or the agent is leaving"
            raise AgentMuxError("STDIN_NOT_AVAILABLE", over)
        self._refusal = None
        self._delivery = _usual_delivery(
            action, is_busy=self.normalizer.is_busy, is_paused=self.state.state == "paused"
        )
        self.record(Kind.ACTION, encode(mended(action)))
        refusal, self._refusal = self._refusal, None
        if refusal is not None:
            raise self._refused(action, refusal)
        if self.state.state == "interrupted" and isinstance(action, Send | Steer):
            self.state.move("running")
        return self._delivery

    async def interrupt(self) -> Delivery:
        """Stop the turn that runs. Nothing is done, and nothing recorded, where none does, or the agent cannot."""
        await self.begun.wait()
        self.require_active()
        self.state.require("interrupted")
        if not self.normalizer.is_busy:
            return "unneeded"
        self._act(Interrupt())
        self.state.move("interrupted")
        self.control(Control("interrupt"))
        await lowlevel.checkpoint()
        return "applied"

    async def close(self) -> Delivery:
        """No more prompts will come."""
        await self.begun.wait()
        self.require_active()
        if self._is_closing:
            return "unneeded"
        self._act(Close())
        self._is_closing = True
        self.control(Control("close"))
        await lowlevel.checkpoint()
        return "applied"

    def _refused(self, action: AnyAction, refusal: Refuse) -> AgentMuxError:
        if refusal.code != "CAPABILITY_ERROR":
            return AgentMuxError(refusal.code, refusal.message)
        is_message = isinstance(action, Steer)
        what = "a message in the middle of a turn" if is_message else f"`{type(action).__name__.lower()}`"
        return CapabilityError(self.plan.adapter.agent, what, hint=refusal.message)

    def require_active(self) -> None:
        """Raises RUN_NOT_ACTIVE when the run is over."""
        if self.state.is_over or self.done.is_set():
            over = f"run {self.plan.run_id} is over ({self.state.state}); start a new one"
            raise AgentMuxError("RUN_NOT_ACTIVE", over)

    def control(self, control: Control) -> None:
        """The mux does something to the run."""
        self.record(Kind.CONTROL, encode(control))

    def _answer_by_policy(self) -> None:
        if not self.normalizer.pending:
            return
        seconds = self.plan.options.answer_within
        for request, decision in self._answers.decide(self.normalizer.pending):
            if decision == "ask" and self._tasks is not None:
                self._tasks.start_soon(self._ask, request)
            elif decision is not None and decision != "ask":
                self.record(Kind.ACTION, encode(decision))
            # No request waits for ever, where there is a limit.
            if seconds and self._tasks is not None and request in self.normalizer.pending:
                self._tasks.start_soon(self._answer_late, request, seconds)

    async def _answer_late(self, request: OpenInteraction, seconds: float) -> None:
        await anyio.sleep(seconds)
        if request in self.normalizer.pending:
            self.record(Kind.ACTION, encode(self._answers.overdue(request)))

    async def _ask(self, request: OpenInteraction) -> None:
        action = await self._answers.ask(request)
        if action is not None and request in self.normalizer.pending:
            self.record(Kind.ACTION, encode(action))

    # -- time-outs and the end

    def stop(self, cause: Cause, message: str = "") -> bool:
        """End the run: told once, for the first reason. False: it is over, or being ended already."""
        if self._stopping.is_set() or self.state.is_over:
            return False
        self._open_journal()
        self._log.tell("stopping", cause=cause, reason=message or None)
        self.control(Control(cause, message))
        self._stopping.set()
        return True

    def kill(self) -> None:
        """End the run without asking anybody."""
        self.stop("abort")
        if self._child is not None and not self.state.is_over:
            self._child.signal_all(signal.SIGKILL)

    def _start_timers(self, tasks: anyio.abc.TaskGroup) -> None:
        options = self.plan.options
        if self.plan.protocol.framing != "lines":
            tasks.start_soon(self._release_soon)
        if options.timeout:
            tasks.start_soon(self._stop_after, options.timeout)
        if self.plan.protocol.quiet_after is not None:
            tasks.start_soon(self._notice_quiet, self.plan.protocol.quiet_after)
        if options.inactivity_timeout:
            tasks.start_soon(self._stop_when_silent, options.inactivity_timeout)

    async def _stop_after(self, seconds: float) -> None:
        await anyio.sleep(max(seconds - self._now() / 1_000_000, 0))  # all attempts together
        self.stop("timeout")

    async def _stop_when_silent(self, seconds: float) -> None:
        while True:
            silent = time.monotonic() - self._last_output
            if self.state.state == "paused" or self.normalizer.pending:
                self._last_output = time.monotonic()  # waiting for a person is not silence
            elif silent >= seconds:
                self.stop("inactivity")
                return
            await anyio.sleep(max(min(seconds - silent, seconds), 0.001))

    async def _notice_quiet(self, seconds: float) -> None:
        """Tell the codec when the agent has printed something and then nothing more for a while."""
        told = 0.0
        while True:
            last = self._last_output
            silent = time.monotonic() - last
            if silent >= seconds and last > told:
                told = last
                self._release()
                self.control(Control("quiet"))
            await anyio.sleep(max(seconds - silent, QUIET_LOOK) if last > told else QUIET_LOOK)

    def resize(self, size: TerminalSize) -> None:
        """Give the agent's terminal another size. Raises PTY_NOT_AVAILABLE when it has none."""
        self.require_active()
        if not isinstance(self._child, TerminalChild):
            raise AgentMuxError("PTY_NOT_AVAILABLE", f"{self.plan.adapter.agent} does not run at a terminal")
        self._child.resize(size)
        self.control(Control("resize", size=size))

    async def _stop_when_told(self, child: Child) -> None:
        await self._stopping.wait()
        child.signal_group(signal.SIGCONT)  # a stopped process cannot leave
        was_told = self.plan.protocol.two_way
        if was_told:
            self.record(Kind.ACTION, encode(Cancel()))
        self._perform([CloseStdin()])
        await end_agent(child, grace=self.plan.options.grace_period, was_told=was_told)

    def signal_processes(self, number: int) -> None:
        """A signal to all processes of the run."""
        if self._child is not None:
            self._child.signal_all(number)


def _usual_delivery(action: AnyAction, *, is_busy: bool, is_paused: bool) -> Delivery:
    if isinstance(action, Steer) and is_busy:
        return "merged"
    is_waiting = is_paused or (is_busy and isinstance(action, Send))
    return "queued" if is_waiting else "applied"
