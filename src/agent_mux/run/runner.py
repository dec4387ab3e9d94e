"""Carries out one run: starts the agent, performs effects, records what crosses the boundary, ends everything.

The only place that performs effects. Every wait is bounded; the run itself is shielded from cancellation, which it
takes as an order to abort: the process is never left behind.
"""

import logging
import signal
from collections.abc import Awaitable, Iterable

import anyio
import anyio.abc
from anyio import lowlevel, to_thread

from agent_mux._util.sanitize import sanitize_unicode
from agent_mux.assembler import Cause, OpenInteraction
from agent_mux.errors import AgentMuxError, CapabilityError
from agent_mux.events import AgentEvent, TurnStartEvent
from agent_mux.journal.records import Control, Exited, Kind, encode
from agent_mux.process.child import Child, spawn_child
from agent_mux.process.reaper import Reaper
from agent_mux.process.spawn_errors import SpawnAttempt, explain_spawn_failure
from agent_mux.process.terminal import TerminalChild, spawn_at_terminal
from agent_mux.run.agent_process import OutputReader, StdinWriter, drain_output, finishes_within, terminate_agent
from agent_mux.run.approvals import Decision, InteractionResponder, PolicyMonitor
from agent_mux.run.base import StateMachine
from agent_mux.run.budget import AttemptCounter, Budget, Retry
from agent_mux.run.concurrency import Slot
from agent_mux.run.environment import private_files
from agent_mux.run.hooks import RunHooks
from agent_mux.run.interaction import InteractionChannel
from agent_mux.run.normalizer import Normalizer
from agent_mux.run.plan import RunPlan
from agent_mux.run.recorder import RunRecorder
from agent_mux.run.result import RunResult
from agent_mux.sdk.codec import (
    Accept,
    AnswerAction,
    AnyAction,
    ApproveAction,
    Cancel,
    Close,
    CloseStdin,
    Delivery,
    DenyAction,
    Effect,
    Interrupt,
    Refuse,
    Send,
    SignalGroup,
    Steer,
    TerminalSize,
    WriteStdin,
)

_SPOKEN = (Send, Steer, ApproveAction, DenyAction, AnswerAction)
"""What has to be said to the agent."""


class Runner:
    """One run, from start to result."""

    def __init__(
        self, plan: RunPlan, reaper: Reaper, ticket: Slot | None = None, hooks: RunHooks | None = None
    ) -> None:
        """`ticket`: a place among the runs of the client, or the wait for one. `hooks`: called from the events."""
        options = plan.options
        self.plan = plan
        self.state = StateMachine()
        self.recorder = RunRecorder(plan)
        self.hooks = hooks
        if hooks is not None:
            hooks.tell(self._warn_of_hooks)
        self.interaction = InteractionChannel(
            plan.run_id, lambda: self.normalizer.pending, self.act, self.require_active
        )
        self._responder = InteractionResponder(plan.run_id, options, self.interaction, self.recorder.listeners)
        self._attempts = AttemptCounter(options.retry_policy)
        self.result: RunResult | None = None
        self.added_environment: dict[str, str] = {} if hooks is None else hooks.environment
        """For the agent, on top of what was planned."""
        self.begun = anyio.Event()
        self.done = anyio.Event()
        self._reaper = reaper
        self._ticket = ticket
        self._child: Child | None = None
        self._outbox = self._new_outbox()
        self._output = self._new_output()
        self._has_place = False
        self._stopping = anyio.Event()
        self._stop: Control | None = None
        self.is_withdrawn = False
        """It was taken back while it waited: it has neither records nor a result."""
        self._budget = Budget(options, agent_counts_turns=plan.spawn.counts_turns)
        self._unasked = None if options.policy is None else PolicyMonitor(options.policy, plan.cwd)
        self._told_of_loss = False
        self._refusal: Refuse | None = None
        self._delivery: Delivery = "applied"
        self._is_closing = False
        self._tasks: anyio.abc.TaskGroup | None = None

    def _new_outbox(self) -> StdinWriter:
        restore, is_json = self.plan.redactor.restore, self.plan.protocol.framing != "chunks"
        return StdinWriter(
            on_written=self.recorder.sent,
            on_lost=self._lost,
            unmask=lambda data: restore(data, is_json=is_json),
        )

    def _new_output(self) -> OutputReader:
        return OutputReader(self.plan.redactor, self.record)

    def _warn_of_hooks(self, message: str) -> None:
        if self.state.is_over:  # the last hooks are called when the events are complete
            self.recorder.log.tell("hook_warning", level=logging.WARNING, reason=message)
        else:
            self.recorder.note(message)

    def _lost(self, data: bytes) -> None:
        """Somebody was told that this is on its way."""
        if not self._stopping.is_set() and not self._told_of_loss:
            self._told_of_loss = True
            self.recorder.note(
                f"{self.plan.adapter.agent} reads no more: what was sent last is lost ({len(data)} bytes)"
            )

    @property
    def queue_position(self) -> int | None:
        """Of a run that waits for a place; None: it has one, or is over."""
        return None if self._ticket is None else self._ticket.position

    @property
    def normalizer(self) -> Normalizer:
        """The state of the stream, to look at."""
        return self.recorder.normalizer

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
            self.recorder.close()

    async def _shielded(self) -> None:
        with anyio.CancelScope(shield=True):
            try:
                if await self._is_admitted():
                    self._has_place = True
                    self.recorder.begin()
                    await self._with_files()
                elif not self.is_withdrawn:
                    self._tell_of_stop()
                    self._finish(Exited())
            finally:
                if self._ticket is not None:
                    self._ticket.leave()
                self._reaper.unregister(self.plan.run_id)
                self.begun.set()
                self.done.set()
                self.recorder.close()

    async def _is_admitted(self) -> bool:
        """Wait for a place. False: the run is ended before it has one."""
        if self._ticket is None:
            return not self._stopping.is_set()
        return await self._is_going_on_after(self._ticket.wait()) and self._ticket.is_held

    async def _is_going_on_after(self, wait: Awaitable[None]) -> bool:
        """Wait, unless the run is ended meanwhile. False: it is."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._cancel_when_stopping, tasks.cancel_scope)
            await wait
            tasks.cancel_scope.cancel()
        return not self._stopping.is_set()

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
                if await self._is_going_on_after(self._reaper.wait_until_ready()):
                    await self._in_its_place()
                else:
                    self._finish(Exited())
        except (OSError, AgentMuxError) as error:
            if self._child is not None:
                raise
            self._never_started(error)

    async def _in_its_place(self) -> None:
        """In the directory that was asked for, or in a worktree of its own."""
        if self.plan.worktree is None:
            self._finish(await self._attempt_until_done())
            return
        from agent_mux.run.worktree import RunWorktree  # noqa: PLC0415  # most runs do without

        worktree = RunWorktree(self.plan.worktree, self.plan.environ)
        exited = Exited()
        try:
            self._note(await to_thread.run_sync(worktree.make, lambda: not self._stopping.is_set()))
        except AgentMuxError:
            if not self._stopping.is_set():
                raise
        else:
            try:
                exited = Exited() if self._stopping.is_set() else await self._attempt_until_done()
            finally:
                self.recorder.worktree, note = await to_thread.run_sync(worktree.leave)
                self._note(note)
        self._finish(exited)

    def _note(self, message: str | None) -> None:
        if message is not None:
            self.recorder.note(message)

    async def _attempt_until_done(self) -> Exited:
        while True:
            self._child = child = self._start()
            self._reaper.register_leader(
                self.plan.run_id, child.pid, child.process.started if child.process is not None else 0
            )
            self.recorder.log.tell("spawned", program=self.plan.spawn.argv[0], pid=child.pid)
            exited = await self._drive(child)
            retry = self._retry_after(exited)
            if retry is None or await self._is_stopped_within(retry):
                return exited
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
        return await finishes_within(retry.delay, self._stopping.wait())

    def _forget_attempt(self) -> None:
        self._outbox = self._new_outbox()
        self._output = self._new_output()

    def _start(self) -> Child:
        plan, spawn = self.plan, self.plan.spawn
        environ = {**plan.environ, **self.added_environment}
        if spawn.terminal is not None:
            return spawn_at_terminal(spawn.argv, run_id=plan.run_id, env=environ, cwd=plan.cwd, size=spawn.terminal)
        return spawn_child(spawn.argv, run_id=plan.run_id, env=environ, cwd=plan.cwd, stdin=spawn.stdin == "pipe")

    async def _drive(self, child: Child) -> Exited:
        try:
            async with anyio.create_task_group() as tasks:
                self._tasks = tasks
                tasks.start_soon(self._output.read_stdout, child)
                tasks.start_soon(self._output.read_stderr, child)
                tasks.start_soon(self._outbox.deliver, child)
                tasks.start_soon(self._stop_when_told, child)
                self._start_timers(tasks)
                if self.state.state == "spawned":
                    self.state.move("running")
                self._first_input()
                await child.wait()
                await drain_output(child, self._output.complete)
                tasks.cancel_scope.cancel()
        finally:
            child.close_pipes()  # looking for processes takes descriptors, and there may be no others left
            child.signal_all(signal.SIGKILL)
            code = await child.wait()
            child.close()
        self._output.release()
        return Exited(code=code) if code >= 0 else Exited(signal=-code)

    def _first_input(self) -> None:
        text = self.plan.spawn.stdin_text
        if text is not None:
            self._perform([WriteStdin(text.encode("utf-8", "surrogateescape")), CloseStdin()])
        self.record(Kind.CONTROL, encode(Control("start")))
        self.begun.set()

    def _never_started(self, error: OSError | AgentMuxError) -> None:
        plan = self.plan
        attempt = SpawnAttempt(plan.spawn.argv, plan.environ, plan.cwd)
        reason = explain_spawn_failure(error, attempt) if isinstance(error, OSError) else str(error)
        message = f"{attempt.program} could not be started in {plan.cwd}: {reason}"
        self.recorder.log.tell("not_started", level=logging.ERROR, reason=message)
        self.record(Kind.CONTROL, encode(Control("spawn_error", message)))
        self._finish(Exited())

    def _finish(self, exited: Exited) -> None:
        self.record(Kind.EXIT, encode(exited))
        self.result = self.recorder.result(exited)
        self.state.finish(self.result.exit_reason)
        self.recorder.log.ended(self.result)

    # -- records

    def record(self, kind: Kind, payload: bytes) -> None:
        """Something happened: journal it, make events of it, perform what the codec asks for, see what waits."""
        events = self.recorder.take(kind, payload)
        if events:
            self._publish(events)
        if self.normalizer.effects:
            self._perform(self.normalizer.take_effects())
        if kind is not Kind.EXIT:
            self._answer_by_policy()

    def _publish(self, events: list[AgentEvent]) -> None:
        if self.state.state == "interrupted" and any(isinstance(event, TurnStartEvent) for event in events):
            self.state.move("running")  # with a prompt that was queued
        self.recorder.tell(events)
        if self._budget.is_set:
            self._keep_budget(events)
        if self.hooks is not None:
            self.hooks.observe(events)
        if self._unasked is not None:
            for warning in self._unasked.observe(events):
                self.recorder.note(warning)

    def _keep_budget(self, events: list[AgentEvent]) -> None:
        spent = self._budget.observe(events)
        if spent is not None:
            self.stop(spent.cause, spent.message)
        unkept = self._budget.unkept()
        if unkept is not None:
            self.recorder.note(unkept)

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
        self.record(Kind.ACTION, encode(sanitize_unicode(action)))
        if self.hooks is not None and isinstance(action, Send | Steer):
            self.hooks.prompted(action.text)
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
        for request, decision in self._responder.decide(self.normalizer.pending):
            if self._hooks_decide(request, decision):
                pass
            elif decision == "ask" and self._tasks is not None:
                self._tasks.start_soon(self._ask, request)
            elif decision is not None and decision != "ask":
                self.record(Kind.ACTION, encode(decision))
            # No request waits for ever, where there is a limit.
            if seconds and self._tasks is not None and request in self.normalizer.pending:
                self._tasks.start_soon(self._answer_late, request, seconds)

    def _hooks_decide(self, request: OpenInteraction, otherwise: Decision) -> bool:
        """A yes of the policy or the mode may become a no: not the other way round."""
        if self.hooks is None or request.kind != "approval" or isinstance(otherwise, DenyAction) or self._tasks is None:
            return False
        self._tasks.start_soon(self._ask_hooks, request, otherwise)
        return True

    async def _ask_hooks(self, request: OpenInteraction, otherwise: Decision) -> None:
        assert self.hooks is not None  # noqa: S101  # they are what this is about
        said = await self.hooks.decide(request)
        if said is None and otherwise == "ask":
            await self._ask(request)
            return
        action = said if said is not None else otherwise
        if action is not None and action != "ask" and request in self.normalizer.pending:
            self.record(Kind.ACTION, encode(action))

    async def _answer_late(self, request: OpenInteraction, seconds: float) -> None:
        await anyio.sleep(seconds)
        if request in self.normalizer.pending:
            self.record(Kind.ACTION, encode(self._responder.overdue(request)))

    async def _ask(self, request: OpenInteraction) -> None:
        action = await self._responder.ask_callback(request)
        if action is not None and request in self.normalizer.pending:
            self.record(Kind.ACTION, encode(action))

    # -- time-outs and the end

    def stop(self, cause: Cause, message: str = "") -> bool:
        """End the run: told once, for the first reason. False: it is over, or being ended already."""
        if self._stopping.is_set() or self.state.is_over:
            return False
        self._stop = Control(cause, message)
        if self._has_place:
            self._tell_of_stop()
        self._stopping.set()
        return True

    def _tell_of_stop(self) -> None:
        """A run that waits tells of it when it is its turn to end: many that wait would begin their files at once."""
        assert self._stop is not None  # noqa: S101  # somebody gave the order
        self.recorder.begin()
        self.recorder.log.tell("stopping", cause=self._stop.what, reason=self._stop.message or None)
        self.control(self._stop)

    def withdraw(self) -> bool:
        """Take back a run that waits for a place. False: it has one, or is being ended."""
        if self.queue_position is None or self._stopping.is_set() or self.state.is_over:
            return False
        self.is_withdrawn = True
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
            tasks.start_soon(self._output.release_soon)
        if options.timeout:
            tasks.start_soon(self._stop_after, options.timeout)
        if self.plan.protocol.quiet_after is not None:
            tasks.start_soon(self._output.notice_pauses, self.plan.protocol.quiet_after, self._notice_quiet)
        if options.inactivity_timeout:
            tasks.start_soon(self._stop_when_silent, options.inactivity_timeout)

    async def _stop_after(self, seconds: float) -> None:
        await anyio.sleep(max(seconds - self.recorder.now() / 1_000_000, 0))  # all attempts together
        self.stop("timeout")

    async def _stop_when_silent(self, seconds: float) -> None:
        await self._output.wait_for_silence(seconds, self._waits_for_a_person)
        self.stop("inactivity")

    def _waits_for_a_person(self) -> bool:
        return self.state.state == "paused" or bool(self.normalizer.pending)

    def _notice_quiet(self) -> None:
        self.control(Control("quiet"))

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
        await terminate_agent(child, grace=self.plan.options.grace_period, was_told=was_told)

    def signal_processes(self, number: int) -> None:
        """A signal to all processes of the run."""
        if self._child is not None:
            self._child.signal_all(number)


def _usual_delivery(action: AnyAction, *, is_busy: bool, is_paused: bool) -> Delivery:
    if isinstance(action, Steer) and is_busy:
        return "merged"
    is_waiting = is_paused or (is_busy and isinstance(action, Send))
    return "queued" if is_waiting else "applied"
