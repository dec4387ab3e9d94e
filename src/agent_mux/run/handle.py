"""The consumer's end of a run: watch it, talk to it, control it, await it. Source: run API, section 3."""

import signal
from collections.abc import Callable, Mapping
from typing import Any, Self

from agent_mux.errors import AgentMuxError
from agent_mux.journal.records import Control, Header
from agent_mux.run.base import BaseRun, RunState, check_terminal_size
from agent_mux.run.interaction import InteractionChannel
from agent_mux.run.readers import EventReader
from agent_mux.run.result import RunResult
from agent_mux.run.runner import Runner
from agent_mux.sdk.adapter import Adapter
from agent_mux.sdk.codec import AnyAction, ApproveAction, Delivery, DenyAction, TerminalSize


class RunHandle(BaseRun):
    """One run of this process. Three ways to consume it, all at once if wanted: `async for`, `on(...)`, and `await`."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner

    @property
    def run_id(self) -> str:
        """ULID of the run."""
        return self._runner.plan.run_id

    @property
    def agent(self) -> str:
        """Registered name of the agent."""
        return self._runner.plan.adapter.agent

    @property
    def model(self) -> str | None:
        """The model, as the agent says, else as asked for."""
        return self._runner.normalizer.assembler.model or self._runner.plan.options.model

    @property
    def session_id(self) -> str | None:
        """The agent's own session id, once known."""
        return self._runner.normalizer.assembler.session_id

    @property
    def header(self) -> Header:
        """The plan of the run as its recording has it: without secrets."""
        return self._runner.recorder.header

    @property
    def adapter(self) -> Adapter:
        """What is known of the agent."""
        return self._runner.plan.adapter

    @property
    def state(self) -> RunState:
        """Where the run is."""
        return self._runner.state.state

    @property
    def event_count(self) -> int:
        """The number of events so far."""
        return self._runner.recorder.event_count

    def on_state(self, callback: Callable[[RunState], None]) -> None:
        """Call back at each change of `state`, with the new one. It must not block or raise."""
        self._runner.state.on_change(callback)

    @property
    def queue_position(self) -> int | None:
        """Where the run stands in the queue of its client: 1 is next. None: it does not wait.

        As things stand, if all runs take equally long: others may come, and go. `AgentMux.places.changed` tells when.
        """
        return self._runner.queue_position

    @property
    def is_busy(self) -> bool:
        """The agent has a prompt that it has not dealt with."""
        return not self._runner.state.is_over and self._runner.normalizer.is_busy

    @property
    def journal(self) -> str | None:
        """Path of the run's recording; None when there is none."""
        path = self._runner.recorder.journal_path
        return None if path is None else str(path)

    def add_environment(self, variables: Mapping[str, str]) -> None:
        """Variables for the agent that the options say nothing of; before it is started, that is, at once."""
        self._runner.added_environment.update(
            {name: value for name, value in variables.items() if name not in self._runner.plan.options.env}
        )

    # -- consuming

    def events(self, start: int = 0) -> EventReader:
        """Every event from number `start`, from the first by default, however late or slow this reader is."""
        return self._runner.recorder.read(start)

    def on(self, event_type: str, handler: Callable[[Any], Any]) -> Self:
        """Call `handler` for each event of a type (`*`: all), as it happens. It must not block."""
        self._runner.recorder.listeners.on(event_type, handler)
        return self

    def once(self, event_type: str, handler: Callable[[Any], Any]) -> Self:
        """As `on`, for the next event only."""
        self._runner.recorder.listeners.on(event_type, handler, once=True)
        return self

    def off(self, event_type: str, handler: Callable[[Any], Any]) -> Self:
        """Call it no more."""
        self._runner.recorder.listeners.off(event_type, handler)
        return self

    async def result(self) -> RunResult:
        """How the run ended. Waits for it; never raises for what the agent did. RUN_NOT_ACTIVE if it was withdrawn."""
        await self._runner.done.wait()
        if self._runner.is_withdrawn:
            raise AgentMuxError("RUN_NOT_ACTIVE", f"run {self.run_id} was taken back before it began; start it again")
        if self._runner.result is None:
            raise AgentMuxError("INTERNAL", f"run {self.run_id} ended without a result: an error of agent-mux itself")
        return self._runner.result

    # -- talking

    @property
    def interaction(self) -> InteractionChannel:
        """What the agent waits for, and a way to answer."""
        return self._runner.interaction

    async def _act(self, action: AnyAction) -> Delivery:
        return await self._runner.act(action)

    async def _wait_until_begun(self) -> None:
        await self._runner.begun.wait()

    def _require_active(self) -> None:
        self._runner.require_active()

    async def approve(self, *, always: bool = False) -> Delivery:
        """Allow the oldest pending approval. Raises NO_PENDING_INTERACTION when nothing waits."""
        return await self._runner.act(ApproveAction(self._oldest_approval(), always))

    async def deny(self, reason: str | None = None) -> Delivery:
        """Refuse the oldest pending approval. Raises NO_PENDING_INTERACTION when nothing waits."""
        return await self._runner.act(DenyAction(self._oldest_approval(), reason))

    def _oldest_approval(self) -> str:
        self._require_active()
        for open_ in self._runner.normalizer.pending:
            if open_.kind == "approval":
                return open_.request_id
        raise AgentMuxError("NO_PENDING_INTERACTION", f"run {self.run_id} waits for no approval")

    # -- controlling

    async def interrupt(self) -> Delivery:
        """Stop the agent's current operation; it may live on: see `RunOptions.interactive`. `unneeded`: there is none.

        Raises INVALID_STATE_TRANSITION while the run is paused, `CapabilityError` when the agent cannot be interrupted,
        RUN_NOT_ACTIVE after the end.
        """
        return await self._runner.interrupt()

    async def resize(self, columns: int, rows: int) -> None:
        """Give the agent's terminal another size, in characters.

        Raises `ValidationError` for what is no size, PTY_NOT_AVAILABLE when the agent has no terminal.
        """
        check_terminal_size(columns, rows)
        await self._runner.begun.wait()
        self._runner.resize(TerminalSize(columns, rows))

    async def abort(self) -> Delivery:
        """End the run, whatever it does: by its protocol, then SIGTERM, then SIGKILL. Returns when it is over.

        `unneeded`: it was over, or about to be.
        """
        is_news = self._runner.stop("abort")
        await self._runner.done.wait()
        return "applied" if is_news else "unneeded"

    def withdraw(self) -> bool:
        """Take back a run that waits for a place: no file, no event and no result is left of it.

        For programs that will ask for it again, as a service that is restarted. False: it has begun, or is being ended.
        """
        return self._runner.withdraw()

    @property
    def is_withdrawn(self) -> bool:
        """It was taken back while it waited."""
        return self._runner.is_withdrawn

    def kill(self) -> None:
        """End the run at once: SIGKILL to all its processes. `abort` lets the agent leave in order."""
        self._runner.kill()

    async def close(self) -> Delivery:
        """No more prompts will come: the agent finishes what it was asked and leaves. `unneeded`: it knows.

        Raises RUN_NOT_ACTIVE after the end.
        """
        return await self._runner.close()

    async def pause(self) -> Delivery:
        """Stop all processes of the run until `resume`.

        Raises INVALID_STATE_TRANSITION when it is paused already, RUN_NOT_ACTIVE after the end.
        """
        await self._runner.begun.wait()
        self._runner.require_active()
        self._runner.state.move("paused")
        self._runner.signal_processes(signal.SIGSTOP)
        self._runner.control(Control("pause"))
        return "applied"

    async def resume(self) -> Delivery:
        """Let them go on.

        Raises INVALID_STATE_TRANSITION when the run is not paused, RUN_NOT_ACTIVE after the end.
        """
        await self._runner.begun.wait()
        self._runner.require_active()
        if self.state != "paused":
            raise AgentMuxError("INVALID_STATE_TRANSITION", f"run {self.run_id} is {self.state}, not paused")
        self._runner.state.move("running")
        self._runner.signal_processes(signal.SIGCONT)
        self._runner.control(Control("resume"))
        return "applied"
