"""The handle of a local run: consume its events, talk to its agent, control it, await its result.

See docs/spec/run-api.md, section 3.
"""

import warnings
from collections.abc import Callable, Mapping
from typing import Any

from anyio import to_thread

from agent_mux.errors import AgentMuxError
from agent_mux.events import AgentEvent
from agent_mux.journal.records import Header
from agent_mux.run.base import BaseRun, RunState, check_approval_mode, check_model, check_terminal_size
from agent_mux.run.interaction import InteractionChannel
from agent_mux.run.readers import EventReader
from agent_mux.run.result import RunResult
from agent_mux.run.runner import Runner
from agent_mux.sdk.adapter import Adapter
from agent_mux.sdk.codec import AnyAction, ApproveAction, Delivery, DenyAction, TerminalSize
from agent_mux.sdk.options import ApprovalMode


class RunHandle(BaseRun):
    """One run in this process, which can be consumed with `async for`, `on(...)` and `await`, also simultaneously."""

    def __init__(self, runner: Runner, *, is_internal: bool = False) -> None:
        """Create a handle of a run; `is_internal`: not the one that the caller has to use."""
        self._is_used = is_internal
        """Whether the caller has read or controlled the run."""
        self._runner = runner
        self._core = runner.core

    def __del__(self) -> None:
        if getattr(self, "_is_used", True):
            return
        lost = f"run {self.run_id} of {self.agent} was never awaited or read (it is {self._core.state.state})"
        hint = "use `result = await mux.run(...)`, or read its events; leaving the client aborts runs"
        warnings.warn(f"{lost}: {hint}", RuntimeWarning, stacklevel=1, source=self)

    @property
    def _control(self) -> Runner:
        """The runner, for what the caller does with the run."""
        self._is_used = True
        return self._runner

    @property
    def run_id(self) -> str:
        """ULID of the run."""
        return self._core.plan.run_id

    @property
    def agent(self) -> str:
        """Registered name of the agent."""
        return self._core.plan.adapter.agent

    @property
    def model(self) -> str | None:
        """The model that the agent reported, else the requested one."""
        return self._core.normalizer.assembler.model or self._core.plan.options.model

    @property
    def session_id(self) -> str | None:
        """The agent's own session id; None until it is known."""
        return self._core.normalizer.assembler.session_id

    @property
    def header(self) -> Header:
        """The plan of the run as in its recording, without secrets."""
        return self._core.recorder.header

    @property
    def adapter(self) -> Adapter:
        """The adapter of the agent."""
        return self._core.plan.adapter

    @property
    def state(self) -> RunState:
        """Current state of the run."""
        self._is_used = True
        return self._core.state.state

    @property
    def event_bytes(self) -> int:
        """About how many bytes of memory the events take that the run keeps for its readers."""
        return self._core.recorder.bytes_in_memory

    @property
    def event_count(self) -> int:
        """Number of events so far."""
        return self._core.recorder.event_count

    def on_state(self, callback: Callable[[RunState], None]) -> None:
        """Call `callback` with each new state. It must not block. If it raises, that is logged."""
        self._is_used = True
        self._core.state.on_change(callback)

    @property
    def left_running(self) -> list[str]:
        """The command lines of processes that the agent left running when it exited, and that were ended; redacted."""
        return [self._core.plan.redactor.mask_text(line) for line in self._runner.lifecycle.left_running]

    @property
    def queue_position(self) -> int | None:
        """Position of the run in the queue of its client, from 1; None if it does not wait.

        An estimate that assumes equal durations of all runs. It can grow or shrink; `AgentMux.concurrency.changed`
        signals changes.
        """
        return self._runner.lifecycle.queue_position

    @property
    def is_busy(self) -> bool:
        """Whether the agent has a prompt that it has not finished."""
        self._is_used = True
        return not self._core.state.is_over and self._core.normalizer.is_busy

    @property
    def journal(self) -> str | None:
        """Path of the run's recording; None without one."""
        path = self._core.recorder.journal_path
        return None if path is None else str(path)

    async def read_text(self, offset: int = 0, limit: int | None = None) -> bytes:
        """Return at most `limit` bytes of the whole text of the last turn from a byte on, as UTF-8, from the journal.

        `result.text` is its beginning when the text exceeds `max_text_bytes`. Raises RUN_NOT_FOUND without a journal.
        """
        plan, path = self._core.plan, self.journal
        from agent_mux.run.whole_text import whole_text  # noqa: PLC0415  # few runs are read by range

        text = await to_thread.run_sync(whole_text, path, plan.new_codec, self.run_id)
        return await to_thread.run_sync(text.read, offset, limit)

    def add_environment(self, variables: Mapping[str, str]) -> None:
        """Add variables for the agent that the options do not set.

        Call it before the agent starts, without awaiting.
        """
        self._runner.lifecycle.added_environment.update(
            {name: value for name, value in variables.items() if name not in self._core.plan.options.env}
        )

    # -- consuming

    def events(self, start: int = 0) -> EventReader:
        """Return a reader of every event from number `start`, however late or slow it is read."""
        self._is_used = True
        return self._core.recorder.read(start)

    def internal_events(self, start: int = 0) -> EventReader:
        """Return a reader as `events` does, for somebody who cannot answer the requests of the run."""
        return self._core.recorder.read(start, is_internal=True)

    def observe(self, observer: Callable[[AgentEvent], object]) -> None:
        """Call `observer` for each event, for traces and counters: unlike a handler, it cannot answer requests.

        A run that has observers only declines the requests that the options leave open.
        """
        self._core.recorder.listeners.observe(observer)

    def _add_handler(self, event_type: str, handler: Callable[[Any], object], *, once: bool) -> None:
        self._is_used = True
        self._core.recorder.listeners.on(event_type, handler, once=once)

    def _remove_handler(self, event_type: str, handler: Callable[[Any], object]) -> None:
        self._core.recorder.listeners.off(event_type, handler)

    async def result(self) -> RunResult:
        """Wait for the end of the run and return its result; never raises for what the agent did.

        Raises RUN_NOT_ACTIVE if the run was withdrawn.
        """
        self._is_used = True
        await self._core.done.wait()
        if self._runner.lifecycle.is_withdrawn:
            raise AgentMuxError("RUN_NOT_ACTIVE", f"run {self.run_id} was withdrawn before it began; start it again")
        result = self._runner.lifecycle.result
        if result is None:
            raise AgentMuxError("INTERNAL", f"run {self.run_id} ended without a result: an error of agent-mux itself")
        return result

    # -- talking

    @property
    def interaction(self) -> InteractionChannel:
        """The pending approvals and questions, and methods to answer them."""
        return self._control.interaction

    async def _act(self, action: AnyAction) -> Delivery:
        return await self._control.act(action)

    async def _wait_until_begun(self) -> None:
        await self._core.begun.wait()

    def _require_active(self) -> None:
        self._core.require_active()

    async def approve(self, *, always: bool = False) -> Delivery:
        """Approve the oldest pending approval. Raises NO_PENDING_INTERACTION if none is pending."""
        return await self._control.act(ApproveAction(self._oldest_approval(), always))

    async def deny(self, reason: str | None = None) -> Delivery:
        """Deny the oldest pending approval. Raises NO_PENDING_INTERACTION if none is pending."""
        return await self._control.act(DenyAction(self._oldest_approval(), reason))

    def _oldest_approval(self) -> str:
        self._require_active()
        for open_ in self._core.normalizer.pending:
            if open_.kind == "approval":
                return open_.request_id
        raise AgentMuxError("NO_PENDING_INTERACTION", f"run {self.run_id} has no pending approval")

    # -- controlling

    async def set_model(self, model: str) -> Delivery:
        """Use another model: at once if the agent can, else from the next turn on (`queued`).

        A model that the agent refuses is a `debug` event of level `warn`. Raises `CapabilityError` if the model cannot
        be changed during a run, `ValidationError` for an empty name, RUN_NOT_ACTIVE after the end.
        """
        check_model(model)
        return await self._control.set_model(model)

    async def set_approval_mode(self, mode: ApprovalMode) -> Delivery:
        """Continue in another approval mode: at once, or from the next turn on (`queued`).

        Pending requests stay pending. Returns `unneeded` if the run has this mode. Raises `CapabilityError` if the
        agent cannot change to it, `ValidationError` for an unknown mode, RUN_NOT_ACTIVE after the end.
        """
        check_approval_mode(mode)
        return await self._control.set_approval_mode(mode)

    @property
    def approval_mode(self) -> ApprovalMode:
        """The approval mode of the run now."""
        return self._core.approval_mode

    async def interrupt(self) -> Delivery:
        """Stop the agent's current operation; whether the agent continues depends on `RunOptions.interactive`.

        Returns `unneeded` if there is no operation, or if it was interrupted and has not stopped yet. Raises
        INVALID_STATE_TRANSITION while the run is paused, `CapabilityError` if the agent cannot be interrupted,
        RUN_NOT_ACTIVE after the end.
        """
        return await self._control.interrupt()

    async def resize(self, columns: int, rows: int) -> None:
        """Set the size of the agent's terminal, in characters.

        Raises `ValidationError` for an impossible size, PTY_NOT_AVAILABLE if the agent has no terminal.
        """
        check_terminal_size(columns, rows)
        await self._control.resize(TerminalSize(columns, rows))

    async def abort(self) -> Delivery:
        """End the run: by its protocol, then SIGTERM, then SIGKILL. Returns when the run is over.

        Returns `unneeded` if the run was over or already ending.
        """
        return await self._control.abort()

    def withdraw(self) -> bool:
        """Withdraw a run that waits for a slot; no file, event or result of it remains.

        For programs that will start the run again, such as a restarted service. Returns False if the run has begun or
        is ending.
        """
        return self._control.lifecycle.withdraw()

    @property
    def is_withdrawn(self) -> bool:
        """Whether the run was withdrawn while it waited."""
        return self._runner.lifecycle.is_withdrawn

    def kill(self) -> None:
        """End the run at once with SIGKILL to all its processes; `abort` lets the agent exit in order."""
        self._control.kill()

    async def close(self) -> Delivery:
        """Announce that no more prompts follow: the agent finishes its work and exits.

        Returns `unneeded` if the run was closed before. Raises RUN_NOT_ACTIVE after the end.
        """
        return await self._control.close()

    async def pause(self) -> Delivery:
        """Stop all processes of the run until `resume`.

        Raises INVALID_STATE_TRANSITION if the run is already paused, RUN_NOT_ACTIVE after the end.
        """
        return await self._control.pause()

    async def resume(self) -> Delivery:
        """Continue all processes of a paused run.

        Raises INVALID_STATE_TRANSITION if the run is not paused, RUN_NOT_ACTIVE after the end.
        """
        return await self._control.resume()
