"""The life of a run: its slot, its files, its attempts, and its end.

Every wait is bounded. A run is shielded from cancellation, which aborts it instead, so that no process is left behind.
"""

import logging
import math
import signal
import time
from collections.abc import Awaitable
from typing import TYPE_CHECKING

import anyio
import anyio.abc
from anyio import to_thread

from agent_mux.errors import AgentMuxError
from agent_mux.journal.records import Control, Exited, Kind, encode
from agent_mux.process.child import Child, spawn_child
from agent_mux.process.reaper import Reaper
from agent_mux.process.spawn_errors import SpawnAttempt, explain_spawn_failure
from agent_mux.process.terminal import spawn_at_terminal
from agent_mux.run.agent_process import OutputReader, drain_output, finishes_within, terminate_agent
from agent_mux.run.approvals import InteractionResponder
from agent_mux.run.attempts import AttemptCounter, NextAttempt
from agent_mux.run.changed_files import WorkingTreeChanges
from agent_mux.run.concurrency import Slot
from agent_mux.run.core import RunCore
from agent_mux.run.environment import private_files, write_private_files
from agent_mux.run.result import RunResult
from agent_mux.run.timers import RunTimers
from agent_mux.sdk.codec import Cancel, CloseStdin, WriteStdin

if TYPE_CHECKING:
    from agent_mux.run.hooks import RunHooks
    from agent_mux.worktrees.snapshots import WorkingTreeState
    from agent_mux.worktrees.worktree import RunWorktree


class RunLifecycle:
    """Carries out one run, from the queue to its result."""

    def __init__(self, core: RunCore, reaper: Reaper, slot: Slot | None, responder: InteractionResponder) -> None:
        """Prepare the run.

        Args:
            core: The run.
            reaper: Ends the processes of the run if this process dies.
            slot: The run's slot, active or waiting; None: the run needs no slot.
            responder: Answers the agent's requests.
        """
        self._core = core
        self._reaper = reaper
        self._slot = slot
        self._responder = responder
        self._timers = RunTimers(core)
        options = core.plan.options
        self._attempts = (
            AttemptCounter(options.retry_policy)  # a refused turn does not end a conversation
            if options.interactive
            else AttemptCounter(
                options.retry_policy, wait_for_quota=options.wait_for_quota, fallbacks=core.plan.fallbacks
            )
        )
        self._tasks: anyio.abc.TaskGroup | None = None
        self._hooks_of_fallback: RunHooks | None = None
        self.added_environment: dict[str, str] = {}
        """Variables for the agent, in addition to the plan."""
        self.left_running: list[str] = []
        """Command lines of the processes that the agent left running, and that were ended."""
        self.result: RunResult | None = None
        self._is_claiming = False
        self.is_withdrawn = False
        """Whether the run was withdrawn while it waited; it then has neither records nor a result."""

    @property
    def queue_position(self) -> int | None:
        """Position of a run that waits for a slot; None if it does not wait."""
        return None if self._slot is None else self._slot.position

    def withdraw(self) -> bool:
        """Withdraw a run that waits for a slot. Returns False if it has one, or is stopping."""
        core = self._core
        if (
            (self.queue_position is None and not self._is_claiming)
            or core.has_slot
            or core.stopping.is_set()
            or core.state.is_over
        ):
            return False
        self.is_withdrawn = True
        core.stopping.set()
        return True

    async def execute(self) -> None:
        """Execute the run to its end. A cancellation of the caller becomes an abort."""
        try:
            async with anyio.create_task_group() as tasks:
                self._tasks = tasks
                tasks.start_soon(self._execute_shielded)
                try:
                    await self._core.done.wait()
                except anyio.get_cancelled_exc_class():
                    self._core.stop("abort")
                    raise
        finally:
            self._core.recorder.close()

    async def _execute_shielded(self) -> None:
        core = self._core
        with anyio.CancelScope(shield=True):
            try:
                if await self._wait_for_slot() and await self._claim():
                    core.has_slot = True
                    core.recorder.begin()
                    await self._run_with_files()
                elif not self.is_withdrawn:
                    core.record_stop()
                    self._finish(Exited())
            finally:
                if self._slot is not None:
                    self._slot.leave()
                self._reaper.unregister(core.plan.run_id)
                if self._hooks_of_fallback is not None:
                    self._hooks_of_fallback.close()
                core.begun.set()
                core.done.set()
                core.recorder.close()

    async def _wait_for_slot(self) -> bool:
        """Wait for a slot. Returns False if the run is ended first."""
        if self._slot is None:
            return not self._core.stopping.is_set()
        return await self._finishes_before_stop(self._slot.wait()) and self._slot.is_held

    async def _claim(self) -> bool:
        """Ask whether the run may begin. Returns False if it may not, or is ended first."""
        claim = self._core.plan.claim
        if claim is None:
            return True
        allowed = False

        async def ask() -> None:
            nonlocal allowed
            allowed = await claim()

        self._is_claiming = True
        is_in_time = await self._finishes_before_stop(ask())
        self._is_claiming = False
        if is_in_time and not allowed:
            self.is_withdrawn = True
        return is_in_time and allowed

    async def _finishes_before_stop(self, wait: Awaitable[None]) -> bool:
        """Wait, unless the run is stopped meanwhile. Returns False if it is."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._cancel_when_stopping, tasks.cancel_scope)
            await wait
            tasks.cancel_scope.cancel()
        return not self._core.stopping.is_set()

    async def _cancel_when_stopping(self, scope: anyio.CancelScope) -> None:
        await self._core.stopping.wait()
        scope.cancel()

    async def _run_with_files(self) -> None:
        core, plan = self._core, self._core.plan
        try:
            self._reaper.watch(plan.run_id, plan.temp_dir)
            with private_files(plan.temp_dir, plan.spawn.files):
                for note in plan.spawn.notes:
                    core.control(Control("note", note))
                if await self._finishes_before_stop(self._reaper.wait_until_ready()):
                    await self._run_in_directory()
                else:
                    self._finish(Exited())
        except (OSError, AgentMuxError) as error:
            if core.agent.child is not None:
                raise
            self._finish_unstarted(error)

    async def _run_in_directory(self) -> None:
        """Run the agent in the requested directory, or in the run's own worktree."""
        plan = self._core.plan
        if plan.worktree is None:
            self._finish(await self._attempt_and_compare(self._changes()))
            return
        from agent_mux.worktrees.run_copy import worktree_of  # noqa: PLC0415  # most runs need neither
        from agent_mux.worktrees.surroundings import own_variables  # noqa: PLC0415

        with own_variables(plan.temp_dir, plan.options.env) as variables:
            self.added_environment.update(variables)
            self._finish(await self._run_in_worktree(worktree_of(plan.worktree, {**plan.environ, **variables})))

    async def _run_in_worktree(self, worktree: "RunWorktree") -> Exited:
        """Create the worktree, run the agent in it, and remove the worktree if it is unchanged."""
        stopping = self._core.stopping
        exited = Exited()
        try:
            self._note(await to_thread.run_sync(worktree.create, lambda: not stopping.is_set()))
        except AgentMuxError:
            if not stopping.is_set():
                raise
        else:
            changes = None if worktree.start is None else self._changes(worktree.start)
            try:
                exited = Exited() if stopping.is_set() else await self._attempt_and_compare(changes)
            finally:
                finished, note = await to_thread.run_sync(worktree.finish, None if changes is None else changes.end)
                self._core.control(Control("workspace", worktree=finished.to_dict()))
                self._note(note)
        return exited

    def _note(self, message: str | None) -> None:
        if message is not None:
            self._core.recorder.note(message)

    def _changes(self, start: "WorkingTreeState | None" = None) -> WorkingTreeChanges | None:
        """Return what compares the working tree; None if nothing does. `start`: its first state, if it is known."""
        plan = self._core.plan
        if not plan.options.track_changes:
            return None
        changes = WorkingTreeChanges(plan.cwd, plan.environ, plan.temp_dir / "snapshots", start)
        return changes if changes.is_possible else None

    async def _attempt_and_compare(self, changes: WorkingTreeChanges | None) -> Exited:
        """Run the agent between two snapshots of its git working tree, if there is one."""
        stopping, recorder = self._core.stopping, self._core.recorder
        if changes is None:
            return await self._run_plans()
        self._note(await to_thread.run_sync(changes.begin, lambda: not stopping.is_set()))
        if stopping.is_set():
            return Exited()
        try:
            return await self._run_plans()
        finally:
            files, note = await to_thread.run_sync(changes.finish, recorder.reported_changes)
            self._core.control(Control("workspace", changed_files=tuple(file.to_dict() for file in files)))
            self._note(note)

    # -- attempts

    async def _run_plans(self) -> Exited:
        """Run the agent, and then its fallbacks as long as the provider refuses. Returns how the last process ended."""
        core = self._core
        while True:
            plan = core.plan
            exited = await self._attempt_until_done()
            if core.plan is plan or not await self._prepare_fallback():
                return exited

    async def _prepare_fallback(self) -> bool:
        """Prepare for the plan that follows: its slot, files, hooks and notes. Returns False if the run is stopped."""
        core, plan = self._core, self._core.plan
        if self._slot is not None and self._slot.agent != plan.adapter.agent:
            self._slot.change_agent(plan.adapter.agent)
            if not await self._finishes_before_stop(self._slot.wait()):
                return False
        write_private_files(plan.temp_dir, plan.spawn.files)
        await self._change_hooks(plan.hooks)
        for note in plan.spawn.notes:
            core.control(Control("note", note))
        return not core.stopping.is_set()

    async def _change_hooks(self, hooks: "RunHooks | None") -> None:
        """Call the hooks of the fallback from now on, until the end of the run or the next fallback."""
        if self._hooks_of_fallback is not None:
            self._hooks_of_fallback.close()
        self._hooks_of_fallback = hooks
        if hooks is not None:
            assert self._tasks is not None  # noqa: S101  # set by `execute`
            hooks.report_to(self._core.warn_of_hooks)
            self.added_environment.update(hooks.environment)
            await self._tasks.start(hooks.run_calls)

    async def _attempt_until_done(self) -> Exited:
        """Run attempts with the current plan until it ends or another plan follows."""
        core = self._core
        plan = core.plan
        while True:
            core.agent.child = child = self._start()
            started = child.process.started if child.process is not None else 0
            self._reaper.register_leader(core.plan.run_id, child.pid, started)
            core.recorder.log.write("spawned", program=core.plan.spawn.argv[0], pid=child.pid)
            exited = await self._drive(child)
            following = self._attempt_after(exited)
            if following is None or await self._is_stopped_before(following):
                return exited
            core.agent.begin_attempt(core.plan)
            if core.plan is not plan:
                return exited

    def _start(self) -> Child:
        plan, spawn = self._core.plan, self._core.plan.spawn
        environ = {**plan.environ, **self.added_environment}
        argv = (*plan.command_prefix, *spawn.argv)
        if spawn.terminal is not None:
            return spawn_at_terminal(argv, run_id=plan.run_id, env=environ, cwd=plan.cwd, size=spawn.terminal)
        directory = str(plan.temp_dir) if spawn.stdout == "file" else None
        has_stdin = spawn.stdin == "pipe"
        return spawn_child(
            argv, run_id=plan.run_id, env=environ, cwd=plan.cwd, stdin=has_stdin, output_directory=directory
        )

    async def _drive(self, child: Child) -> Exited:
        core = self._core
        output = OutputReader(core.plan.redactor, core.record)
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(output.read_stdout, child)
                tasks.start_soon(output.read_stderr, child)
                tasks.start_soon(core.agent.stdin.write_queue, child)
                tasks.start_soon(self._terminate_on_stop, child)
                self._responder.begin_attempt(tasks)
                self._timers.begin_attempt(tasks, output)
                if core.state.state == "spawned":
                    core.state.move("running")
                self._send_first_input()
                await child.wait()
                self.left_running += await drain_output(child, output.complete)
                tasks.cancel_scope.cancel()
        finally:
            child.close_pipes()  # finding processes needs descriptors, and the limit may be reached
            child.signal_all(signal.SIGKILL)
            code = await child.wait()
            child.close()
        output.flush_held()
        return Exited(code=code) if code >= 0 else Exited(signal=-code)

    def _send_first_input(self) -> None:
        text = self._core.plan.spawn.stdin_text
        if text is not None:
            self._core.agent.perform([WriteStdin(text.encode("utf-8", "surrogateescape")), CloseStdin()])
        self._core.control(Control("start"))
        self._core.begun.set()

    async def _terminate_on_stop(self, child: Child) -> None:
        core = self._core
        await core.stopping.wait()
        child.signal_group(signal.SIGCONT)  # a stopped process cannot exit
        was_cancelled = core.plan.protocol.two_way
        if was_cancelled:
            core.record(Kind.ACTION, encode(Cancel()))
        core.agent.perform([CloseStdin()])
        await terminate_agent(child, grace=core.plan.options.grace_period, was_cancelled=was_cancelled)

    def _attempt_after(self, exited: Exited) -> NextAttempt | None:
        core = self._core
        if not self._attempts.may_continue or core.stopping.is_set():
            return None
        core.control(Control("attempt_over", exited=exited))
        verdict = core.normalizer.verdict_so_far
        if verdict is None:
            return None
        following = self._attempts.next(verdict, core.normalizer.assembler.quota, time.time())
        self._note(self._attempts.take_note())
        return following

    async def _is_stopped_before(self, following: NextAttempt) -> bool:
        """Record the next attempt and wait for it. Returns True if the run is stopped meanwhile."""
        core, plan = self._core, following.plan
        if plan is not None:
            core.follow(plan)
        core.control(
            Control(
                "retry",
                following.reason,
                attempt=following.attempt,
                max_attempts=following.max_attempts,
                delay_ms=round(following.delay * 1000),
                header=None if plan is None else plan.header,
            )
        )
        limit = self._seconds_left()
        if await finishes_within(min(following.delay, limit), core.stopping.wait()):
            return True
        return following.delay >= limit and core.stop("timeout")

    def _seconds_left(self) -> float:
        timeout = self._core.plan.options.timeout
        return timeout - self._core.recorder.now() / 1_000_000 if timeout else math.inf

    # -- the end

    def _finish_unstarted(self, error: OSError | AgentMuxError) -> None:
        plan = self._core.plan
        attempt = SpawnAttempt(plan.spawn.argv, plan.environ, plan.cwd)
        reason = explain_spawn_failure(error, attempt) if isinstance(error, OSError) else str(error)
        message = f"{attempt.program} could not be started in {plan.cwd}: {reason}"
        self._core.recorder.log.write("not_started", level=logging.ERROR, reason=message)
        self._core.control(Control("spawn_error", message))
        self._finish(Exited())

    def _finish(self, exited: Exited) -> None:
        core = self._core
        core.record(Kind.EXIT, encode(exited))
        self.result = core.recorder.result(exited)
        core.state.finish(self.result.exit_reason)
        core.recorder.log.write_end(self.result)
