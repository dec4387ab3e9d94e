"""The runner: carries out one run and performs what its consumer asks for while it works.

Its parts share the run's core: the lifecycle (slot, process, attempts, end), the responder (approvals and questions),
the timers, and the performer of effects, which is the only one that acts on the agent.
"""

import signal
from collections.abc import Mapping
from pathlib import Path

import anyio
from anyio import lowlevel

from agent_mux.assembler import Cause
from agent_mux.errors import AgentMuxError, CapabilityError
from agent_mux.journal.records import Control
from agent_mux.process.reaper import Reaper
from agent_mux.run.approvals import InteractionResponder
from agent_mux.run.concurrency import Slot
from agent_mux.run.core import RunCore
from agent_mux.run.interaction import InteractionChannel
from agent_mux.run.lifecycle import RunLifecycle
from agent_mux.run.plan import RunPlan
from agent_mux.sdk.codec import (
    AnyAction,
    Close,
    Delivery,
    Interrupt,
    Refuse,
    SetApprovalMode,
    SetModel,
    Steer,
    TerminalSize,
)
from agent_mux.sdk.options import ApprovalMode
from agent_mux.settings.named_paths import start_at

_NAMES: Mapping[type, str] = {
    Steer: "a message in the middle of a turn",
    SetModel: "another model during this run",
    SetApprovalMode: "another approval mode during this run",
}
"""What an agent does not support that refuses an action."""


class Runner:
    """Executes one run, from its plan to its result."""

    def __init__(self, plan: RunPlan, reaper: Reaper, slot: Slot | None = None) -> None:
        """Prepare the run.

        Args:
            plan: The decisions to carry out.
            reaper: Ends the processes of the run if this process dies.
            slot: The run's slot, active or waiting; None: the run needs no slot.
        """
        self.plan = plan
        self.core = RunCore(plan)
        self.interaction = InteractionChannel(
            plan.run_id, lambda: self.core.normalizer.pending, self.act, self.core.require_active
        )
        self.lifecycle = RunLifecycle(self.core, reaper, slot, InteractionResponder(self.core, self.interaction))
        if plan.hooks is not None:
            plan.hooks.report_to(self.core.warn_of_hooks)
            self.lifecycle.added_environment.update(plan.hooks.environment)
        for one in (plan, *plan.fallbacks):
            if one.callbacks is not None:
                one.callbacks.report_to(self.core.warn_of_hooks)
        self._is_closing = False

    async def execute(self) -> None:
        """Execute the run to its end, calling its hooks. A cancellation of the caller becomes an abort."""
        callbacks = [plan.callbacks for plan in (self.plan, *self.plan.fallbacks) if plan.callbacks is not None]
        if not callbacks:
            await self._execute_with_hooks()
            return
        async with anyio.create_task_group() as tasks:
            for served in callbacks:
                tasks.start_soon(served.serve)
            try:
                await self._execute_with_hooks()
            finally:
                tasks.cancel_scope.cancel()

    async def _execute_with_hooks(self) -> None:
        if self.plan.hooks is None:
            await self.lifecycle.execute()
        else:
            from agent_mux.run.hooks import execute_with_hooks  # noqa: PLC0415  # most runs have none

            await execute_with_hooks(self.lifecycle, self.plan.hooks)

    # -- actions

    async def act(self, action: AnyAction) -> Delivery:
        """Send an action to the agent. Raises RUN_NOT_ACTIVE after the end, and an error if the codec refuses."""
        await self.wait_until_active()
        delivery = self._deliver(action)
        await lowlevel.checkpoint()
        return delivery

    async def wait_until_active(self) -> None:
        """Wait until the agent has its first prompt. Raises RUN_NOT_ACTIVE if the run is over."""
        await self.core.begun.wait()
        self.core.require_active()

    def _deliver(self, action: AnyAction) -> Delivery:
        reply = self.core.deliver(action)
        if isinstance(reply, Refuse):
            raise self._refusal_error(action, reply)
        return reply

    def _refusal_error(self, action: AnyAction, refusal: Refuse) -> AgentMuxError:
        if refusal.code != "CAPABILITY_ERROR":
            return AgentMuxError(refusal.code, refusal.message)
        what = _NAMES.get(type(action), f"`{type(action).__name__.lower()}`")
        return CapabilityError(self.plan.adapter.agent, what, hint=refusal.message)

    async def set_model(self, model: str) -> Delivery:
        """Use another model, at the latest from the next turn on. Raises `CapabilityError` if the agent cannot."""
        await self.wait_until_active()
        adapter = self.core.plan.adapter
        if not adapter.capabilities.set_model:
            hint = "continue its session in another run with the option `model`"
            raise CapabilityError(adapter.agent, "another model during a run", hint=hint)
        if adapter.absolute_files is not None:
            model = adapter.absolute_files({"model": model}, start_at(Path.cwd)).get("model", model)
        delivery = self._deliver(SetModel(model))
        await lowlevel.checkpoint()
        return delivery

    async def set_approval_mode(self, mode: ApprovalMode) -> Delivery:
        """Change the approval mode; `unneeded` if the run has it. Raises `CapabilityError` if the agent cannot.

        While the agent asks, agent-mux decides, and the agent need not know the mode.
        """
        await self.wait_until_active()
        core, adapter = self.core, self.core.plan.adapter
        if mode == core.approval_mode:
            return "unneeded"
        delivery: Delivery = "applied"
        if mode == "plan" or not core.is_asking:
            if mode not in adapter.capabilities.set_approval_mode:
                hint = "continue its session in another run with the option `approval_mode`"
                change = f"approval mode {mode!r} after {core.approval_mode!r} during a run"
                raise CapabilityError(adapter.agent, change, hint=hint)
            delivery = self._deliver(SetApprovalMode(mode))
        core.approval_mode, core.is_asking = mode, mode != "plan"
        core.control(Control("approval_mode", mode))
        await lowlevel.checkpoint()
        return delivery

    async def interrupt(self) -> Delivery:
        """Stop the running turn. Without one, or while it stops, nothing is sent, and the result is `unneeded`."""
        await self.wait_until_active()
        state = self.core.state
        if state.state == "interrupted":
            return "unneeded"
        state.require("interrupted")
        if not self.core.normalizer.is_busy:
            return "unneeded"
        self._deliver(Interrupt())
        state.move("interrupted")
        self.core.control(Control("interrupt"))
        await lowlevel.checkpoint()
        return "applied"

    async def close(self) -> Delivery:
        """Announce that no more prompts follow; `unneeded` if this was done before."""
        await self.wait_until_active()
        if self._is_closing:
            return "unneeded"
        self._deliver(Close())
        self._is_closing = True
        self.core.control(Control("close"))
        await lowlevel.checkpoint()
        return "applied"

    async def pause(self) -> Delivery:
        """Stop all processes of the run. Raises INVALID_STATE_TRANSITION if they are stopped."""
        await self.wait_until_active()
        self.core.state.move("paused")
        self.core.agent.signal_processes(signal.SIGSTOP)
        self.core.control(Control("pause"))
        return "applied"

    async def resume(self) -> Delivery:
        """Continue all processes of a paused run. Raises INVALID_STATE_TRANSITION if it is not paused."""
        await self.wait_until_active()
        state = self.core.state
        if state.state != "paused":
            raise AgentMuxError("INVALID_STATE_TRANSITION", f"run {self.plan.run_id} is {state.state}, not paused")
        state.move("running")
        self.core.agent.signal_processes(signal.SIGCONT)
        self.core.control(Control("resume"))
        return "applied"

    async def resize(self, size: TerminalSize) -> None:
        """Set the size of the agent's terminal. Raises PTY_NOT_AVAILABLE if it has none."""
        await self.wait_until_active()
        self.core.agent.resize(size)
        self.core.control(Control("resize", size=size))

    # -- the end

    def stop(self, cause: Cause, message: str = "") -> bool:
        """Stop the run; only the first cause counts. Returns False if the run is over or stopping."""
        return self.core.stop(cause, message)

    async def abort(self) -> Delivery:
        """Stop the run and wait for its end; `unneeded` if it was over or already ending."""
        is_first = self.stop("abort")
        await self.core.done.wait()
        return "applied" if is_first else "unneeded"

    def kill(self) -> None:
        """End the run at once, without asking the agent to exit."""
        self.stop("abort")
        if not self.core.state.is_over:
            self.core.agent.signal_processes(signal.SIGKILL)
