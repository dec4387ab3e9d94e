"""The runner: executes one run by starting the agent, recording what crosses the boundary, and performing effects.

It is the only component that performs effects. Every wait is bounded. A run is shielded from cancellation, which aborts
it instead, so that no process is left behind.
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

_NEEDS_STDIN = (Send, Steer, ApproveAction, DenyAction, AnswerAction)
"""Actions that are sent to the agent's standard input."""


class Runner:
    """Executes one run, from its plan to its result."""

    def __init__(self, plan: RunPlan, reaper: Reaper, slot: Slot | None = None, hooks: RunHooks | None = None) -> None:
        """Prepare the run.

        Args:
            plan: The decisions to carry out.
            reaper: Ends the processes of the run if this process dies.
            slot: The run's slot, active or waiting; None: the run needs no slot.
            hooks: Hooks to call from the events.
        """
        options = plan.options
        self.plan = plan
        self.state = StateMachine()
        self.recorder = RunRecorder(plan)
        self.hooks = hooks
        if hooks is not None:
            hooks.report_to(self._warn_of_hooks)
        self.interaction = InteractionChannel(
            plan.run_id, lambda: self.normalizer.pending, self.act, self.require_active
        )
        self._responder = InteractionResponder(plan.run_id, options, self.interaction, self.recorder.listeners)
        self._attempts = AttemptCounter(options.retry_policy)
        self.result: RunResult | None = None
        self.added_environment: dict[str, str] = {} if hooks is None else hooks.environment
        """Variables for the agent, in addition to the plan."""
        self.begun = anyio.Event()
        self.done = anyio.Event()
        self._reaper = reaper
        self._slot = slot
        self._child: Child | None = None
        self._stdin = self._new_stdin_writer()
        self._output = self._new_output()
        self._has_slot = False
        self._stopping = anyio.Event()
        self._stop: Control | None = None
        self.is_withdrawn = False
        """Whether the run was withdrawn while it waited; it then has neither records nor a result."""
        self._budget = Budget(options, agent_counts_turns=plan.spawn.counts_turns)
        self._policy_monitor = None if options.policy is None else PolicyMonitor(options.policy, plan.cwd)
        self._has_reported_loss = False
        self._refusal: Refuse | None = None
        self._delivery: Delivery = "applied"
        self._is_closing = False
        self._tasks: anyio.abc.TaskGroup | None = None

    def _new_stdin_writer(self) -> StdinWriter:
        restore, is_json = self.plan.redactor.restore, self.plan.protocol.framing != "chunks"
        return StdinWriter(
            on_written=self.recorder.record_sent,
            on_lost=self._report_lost_input,
            unmask=lambda data: restore(data, is_json=is_json),
        )

    def _new_output(self) -> OutputReader:
        return OutputReader(self.plan.redactor, self.record)

    def _warn_of_hooks(self, message: str) -> None:
        if self.state.is_over:  # the last hooks are called after the last event
            self.recorder.log.write("hook_warning", level=logging.WARNING, reason=message)
        else:
            self.recorder.note(message)

    def _report_lost_input(self, data: bytes) -> None:
        """Report once that input was lost after its delivery had been confirmed."""
        if not self._stopping.is_set() and not self._has_reported_loss:
            self._has_reported_loss = True
            self.recorder.note(
                f"{self.plan.adapter.agent} no longer reads its input: the last {len(data)} bytes are lost"
            )

    @property
    def queue_position(self) -> int | None:
        """Position of a run that waits for a slot; None if it does not wait."""
        return None if self._slot is None else self._slot.position

    @property
    def normalizer(self) -> Normalizer:
        """The normalizer, for reading the state of the stream."""
        return self.recorder.normalizer

    # -- execution

    async def execute(self) -> None:
        """Execute the run to its end. A cancellation of the caller becomes an abort."""
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._execute_shielded)
                try:
                    await self.done.wait()
                except anyio.get_cancelled_exc_class():
                    self.stop("abort")
                    raise
        finally:
            self.recorder.close()

    async def _execute_shielded(self) -> None:
        with anyio.CancelScope(shield=True):
            try:
                if await self._wait_for_slot():
                    self._has_slot = True
                    self.recorder.begin()
                    await self._run_with_files()
                elif not self.is_withdrawn:
                    self._record_stop()
                    self._finish(Exited())
            finally:
                if self._slot is not None:
                    self._slot.leave()
                self._reaper.unregister(self.plan.run_id)
                self.begun.set()
                self.done.set()
                self.recorder.close()

    async def _wait_for_slot(self) -> bool:
        """Wait for a slot. Returns False if the run is ended first."""
        if self._slot is None:
            return not self._stopping.is_set()
        return await self._finishes_before_stop(self._slot.wait()) and self._slot.is_held

    async def _finishes_before_stop(self, wait: Awaitable[None]) -> bool:
        """Wait, unless the run is stopped meanwhile. Returns False if it is."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._cancel_when_stopping, tasks.cancel_scope)
            await wait
            tasks.cancel_scope.cancel()
        return not self._stopping.is_set()

    async def _cancel_when_stopping(self, scope: anyio.CancelScope) -> None:
        await self._stopping.wait()
        scope.cancel()

    async def _run_with_files(self) -> None:
        spawn = self.plan.spawn
        try:
            self._reaper.watch(self.plan.run_id, self.plan.temp_dir)
            with private_files(self.plan.temp_dir, spawn.files):
                for note in spawn.notes:
                    self.record(Kind.CONTROL, encode(Control("note", note)))
                if await self._finishes_before_stop(self._reaper.wait_until_ready()):
                    await self._run_in_directory()
                else:
                    self._finish(Exited())
        except (OSError, AgentMuxError) as error:
            if self._child is not None:
                raise
            self._finish_unstarted(error)

    async def _run_in_directory(self) -> None:
        """Run the agent in the requested directory, or in the run's own worktree."""
        if self.plan.worktree is None:
            self._finish(await self._attempt_until_done())
            return
        from agent_mux.run.worktree import RunWorktree  # noqa: PLC0415  # most runs do not need it

        worktree = RunWorktree(self.plan.worktree, self.plan.environ)
        exited = Exited()
        try:
            self._note(await to_thread.run_sync(worktree.create, lambda: not self._stopping.is_set()))
        except AgentMuxError:
            if not self._stopping.is_set():
                raise
        else:
            try:
                exited = Exited() if self._stopping.is_set() else await self._attempt_until_done()
            finally:
                self.recorder.worktree, note = await to_thread.run_sync(worktree.finish)
                self._note(note)
        self._finish(exited)

    def _note(self, message: str | None) -> None:
        if message is not None:
            self.recorder.note(message)

    async def _attempt_until_done(self) -> Exited:
        while True:
            self._child = child = self._start()
            started = child.process.started if child.process is not None else 0
            self._reaper.register_leader(self.plan.run_id, child.pid, started)
            self.recorder.log.write("spawned", program=self.plan.spawn.argv[0], pid=child.pid)
            exited = await self._drive(child)
            retry = self._retry_after(exited)
            if retry is None or await self._is_stopped_before_retry(retry):
                return exited
            self._child = None
            self._reset_attempt()

    def _retry_after(self, exited: Exited) -> Retry | None:
        if self.plan.options.retry_policy is None or self._stopping.is_set():
            return None
        self.control(Control("attempt_over", exited=exited))
        verdict = self.normalizer.verdict_so_far
        return None if verdict is None else self._attempts.next_retry(verdict)

    async def _is_stopped_before_retry(self, retry: Retry) -> bool:
        """Record the next attempt and wait for it. Returns True if the run is stopped meanwhile."""
        delay = round(retry.delay * 1000)
        self.control(
            Control("retry", retry.reason, attempt=retry.attempt, max_attempts=retry.max_attempts, delay_ms=delay)
        )
        return await finishes_within(retry.delay, self._stopping.wait())

    def _reset_attempt(self) -> None:
        self._stdin = self._new_stdin_writer()
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
                tasks.start_soon(self._stdin.write_queue, child)
                tasks.start_soon(self._terminate_on_stop, child)
                self._start_timers(tasks)
                if self.state.state == "spawned":
                    self.state.move("running")
                self._first_input()
                await child.wait()
                await drain_output(child, self._output.complete)
                tasks.cancel_scope.cancel()
        finally:
            child.close_pipes()  # finding processes needs descriptors, and the limit may be reached
            child.signal_all(signal.SIGKILL)
            code = await child.wait()
            child.close()
        self._output.flush_held()
        return Exited(code=code) if code >= 0 else Exited(signal=-code)

    def _first_input(self) -> None:
        text = self.plan.spawn.stdin_text
        if text is not None:
            self._perform([WriteStdin(text.encode("utf-8", "surrogateescape")), CloseStdin()])
        self.record(Kind.CONTROL, encode(Control("start")))
        self.begun.set()

    def _finish_unstarted(self, error: OSError | AgentMuxError) -> None:
        plan = self.plan
        attempt = SpawnAttempt(plan.spawn.argv, plan.environ, plan.cwd)
        reason = explain_spawn_failure(error, attempt) if isinstance(error, OSError) else str(error)
        message = f"{attempt.program} could not be started in {plan.cwd}: {reason}"
        self.recorder.log.write("not_started", level=logging.ERROR, reason=message)
        self.record(Kind.CONTROL, encode(Control("spawn_error", message)))
        self._finish(Exited())

    def _finish(self, exited: Exited) -> None:
        self.record(Kind.EXIT, encode(exited))
        self.result = self.recorder.result(exited)
        self.state.finish(self.result.exit_reason)
        self.recorder.log.write_end(self.result)

    # -- records

    def record(self, kind: Kind, payload: bytes) -> None:
        """Record something, publish its events, perform the codec's effects, and decide about new requests."""
        events = self.recorder.record(kind, payload)
        if events:
            self._publish(events)
        if self.normalizer.effects:
            self._perform(self.normalizer.take_effects())
        if kind is not Kind.EXIT:
            self._answer_new_requests()

    def _publish(self, events: list[AgentEvent]) -> None:
        if self.state.state == "interrupted" and any(isinstance(event, TurnStartEvent) for event in events):
            self.state.move("running")  # a queued prompt begins a turn
        self.recorder.publish(events)
        if self._budget.is_set:
            self._enforce_budget(events)
        if self.hooks is not None:
            self.hooks.observe(events)
        if self._policy_monitor is not None:
            for warning in self._policy_monitor.observe(events):
                self.recorder.note(warning)

    def _enforce_budget(self, events: list[AgentEvent]) -> None:
        exceeded = self._budget.observe(events)
        if exceeded is not None:
            self.stop(exceeded.cause, exceeded.message)
        warning = self._budget.take_warning()
        if warning is not None:
            self.recorder.note(warning)

    def _perform(self, effects: Iterable[Effect]) -> None:
        for effect in effects:
            match effect:
                case WriteStdin() | CloseStdin():
                    self._stdin.enqueue(effect)
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
        """Send an action to the agent. Raises RUN_NOT_ACTIVE after the end, and an error if the codec refuses."""
        await self.begun.wait()
        self.require_active()
        delivery = self._act(action)
        await lowlevel.checkpoint()
        return delivery

    def _act(self, action: AnyAction) -> Delivery:
        # No other task may run between these steps, so this function does not await.
        if isinstance(action, _NEEDS_STDIN) and self._stdin.is_closed and self.plan.protocol.two_way:
            closed = f"{self.plan.adapter.agent} takes no more input: this run was closed, or the agent is exiting"
            raise AgentMuxError("STDIN_NOT_AVAILABLE", closed)
        self._refusal = None
        self._delivery = _default_delivery(
            action, is_busy=self.normalizer.is_busy, is_paused=self.state.state == "paused"
        )
        self.record(Kind.ACTION, encode(sanitize_unicode(action)))
        if self.hooks is not None and isinstance(action, Send | Steer):
            self.hooks.observe_prompt(action.text)
        refusal, self._refusal = self._refusal, None
        if refusal is not None:
            raise self._refusal_error(action, refusal)
        if self.state.state == "interrupted" and isinstance(action, Send | Steer):
            self.state.move("running")
        return self._delivery

    async def interrupt(self) -> Delivery:
        """Stop the running turn. Without one, nothing is sent or recorded, and the result is `unneeded`."""
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
        """Announce that no more prompts follow; `unneeded` if this was done before."""
        await self.begun.wait()
        self.require_active()
        if self._is_closing:
            return "unneeded"
        self._act(Close())
        self._is_closing = True
        self.control(Control("close"))
        await lowlevel.checkpoint()
        return "applied"

    def _refusal_error(self, action: AnyAction, refusal: Refuse) -> AgentMuxError:
        if refusal.code != "CAPABILITY_ERROR":
            return AgentMuxError(refusal.code, refusal.message)
        is_message = isinstance(action, Steer)
        what = "a message in the middle of a turn" if is_message else f"`{type(action).__name__.lower()}`"
        return CapabilityError(self.plan.adapter.agent, what, hint=refusal.message)

    def require_active(self) -> None:
        """Raise RUN_NOT_ACTIVE if the run is over."""
        if self.state.is_over or self.done.is_set():
            over = f"run {self.plan.run_id} is over ({self.state.state}); start a new one"
            raise AgentMuxError("RUN_NOT_ACTIVE", over)

    def control(self, control: Control) -> None:
        """Record something that agent-mux does to the run."""
        self.record(Kind.CONTROL, encode(control))

    def _answer_new_requests(self) -> None:
        if not self.normalizer.pending:
            return
        seconds = self.plan.options.answer_within
        for request, decision in self._responder.decide(self.normalizer.pending):
            if self._start_hook_decision(request, decision):
                pass
            elif decision == "ask" and self._tasks is not None:
                self._tasks.start_soon(self._ask_callback, request)
            elif decision is not None and decision != "ask":
                self.record(Kind.ACTION, encode(decision))
            # With a limit, no request waits for ever.
            if seconds and self._tasks is not None and request in self.normalizer.pending:
                self._tasks.start_soon(self._answer_when_overdue, request, seconds)

    def _start_hook_decision(self, request: OpenInteraction, otherwise: Decision) -> bool:
        """Ask the hooks about an approval. Returns False without asking if there are none, or the request is denied.

        Hooks can turn an approval of the policy or the mode into a denial, but not the reverse.
        """
        if self.hooks is None or request.kind != "approval" or isinstance(otherwise, DenyAction) or self._tasks is None:
            return False
        self._tasks.start_soon(self._ask_hooks, request, otherwise)
        return True

    async def _ask_hooks(self, request: OpenInteraction, otherwise: Decision) -> None:
        assert self.hooks is not None  # noqa: S101  # only called with hooks
        hook_action = await self.hooks.decide(request)
        if hook_action is None and otherwise == "ask":
            await self._ask_callback(request)
            return
        action = hook_action if hook_action is not None else otherwise
        if action is not None and action != "ask" and request in self.normalizer.pending:
            self.record(Kind.ACTION, encode(action))

    async def _answer_when_overdue(self, request: OpenInteraction, seconds: float) -> None:
        await anyio.sleep(seconds)
        if request in self.normalizer.pending:
            self.record(Kind.ACTION, encode(self._responder.overdue_action(request)))

    async def _ask_callback(self, request: OpenInteraction) -> None:
        action = await self._responder.ask_callback(request)
        if action is not None and request in self.normalizer.pending:
            self.record(Kind.ACTION, encode(action))

    # -- timeouts and the end

    def stop(self, cause: Cause, message: str = "") -> bool:
        """Stop the run; only the first cause counts. Returns False if the run is over or stopping."""
        if self._stopping.is_set() or self.state.is_over:
            return False
        self._stop = Control(cause, message)
        if self._has_slot:
            self._record_stop()
        self._stopping.set()
        return True

    def _record_stop(self) -> None:
        """Record the cause of the stop.

        A waiting run does so when it is its turn to end, because many waiting runs would otherwise create files at
        once.
        """
        assert self._stop is not None  # noqa: S101  # set by `stop`
        self.recorder.begin()
        self.recorder.log.write("stopping", cause=self._stop.what, reason=self._stop.message or None)
        self.control(self._stop)

    def withdraw(self) -> bool:
        """Withdraw a run that waits for a slot. Returns False if it has one, or is stopping."""
        if self.queue_position is None or self._stopping.is_set() or self.state.is_over:
            return False
        self.is_withdrawn = True
        self._stopping.set()
        return True

    def kill(self) -> None:
        """End the run at once, without asking the agent to exit."""
        self.stop("abort")
        if self._child is not None and not self.state.is_over:
            self._child.signal_all(signal.SIGKILL)

    def _start_timers(self, tasks: anyio.abc.TaskGroup) -> None:
        options = self.plan.options
        if self.plan.protocol.framing != "lines":
            tasks.start_soon(self._output.flush_held_soon)
        if options.timeout:
            tasks.start_soon(self._stop_after, options.timeout)
        if self.plan.protocol.quiet_after is not None:
            tasks.start_soon(self._output.watch_for_quiet, self.plan.protocol.quiet_after, self._record_quiet)
        if options.inactivity_timeout:
            tasks.start_soon(self._stop_when_silent, options.inactivity_timeout)

    async def _stop_after(self, seconds: float) -> None:
        await anyio.sleep(max(seconds - self.recorder.now() / 1_000_000, 0))  # all attempts together
        self.stop("timeout")

    async def _stop_when_silent(self, seconds: float) -> None:
        await self._output.wait_for_silence(seconds, self._is_waiting_for_consumer)
        self.stop("inactivity")

    def _is_waiting_for_consumer(self) -> bool:
        return self.state.state == "paused" or bool(self.normalizer.pending)

    def _record_quiet(self) -> None:
        self.control(Control("quiet"))

    def resize(self, size: TerminalSize) -> None:
        """Set the size of the agent's terminal. Raises PTY_NOT_AVAILABLE if it has none."""
        self.require_active()
        if not isinstance(self._child, TerminalChild):
            raise AgentMuxError("PTY_NOT_AVAILABLE", f"{self.plan.adapter.agent} does not run at a terminal")
        self._child.resize(size)
        self.control(Control("resize", size=size))

    async def _terminate_on_stop(self, child: Child) -> None:
        await self._stopping.wait()
        child.signal_group(signal.SIGCONT)  # a stopped process cannot exit
        was_cancelled = self.plan.protocol.two_way
        if was_cancelled:
            self.record(Kind.ACTION, encode(Cancel()))
        self._perform([CloseStdin()])
        await terminate_agent(child, grace=self.plan.options.grace_period, was_cancelled=was_cancelled)

    def signal_processes(self, number: int) -> None:
        """Send a signal to all processes of the run."""
        if self._child is not None:
            self._child.signal_all(number)


def _default_delivery(action: AnyAction, *, is_busy: bool, is_paused: bool) -> Delivery:
    if isinstance(action, Steer) and is_busy:
        return "merged"
    is_waiting = is_paused or (is_busy and isinstance(action, Send))
    return "queued" if is_waiting else "applied"
