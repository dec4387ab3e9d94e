"""The consumer's end of a run that works at a service. The same as `RunHandle`, over HTTP."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Self

import anyio
import anyio.abc

from agent_mux.assembler import OpenInteraction
from agent_mux.client.remote.commands import request_for
from agent_mux.client.remote.connection import Line, decoded
from agent_mux.client.remote.reading import Catching, RemoteReader
from agent_mux.client.remote.snapshot import Snapshot, Told
from agent_mux.client.remote.stream import News, Stream
from agent_mux.client.remote.telling import Telling
from agent_mux.errors import AgentMuxError
from agent_mux.events import AgentEvent, Rebuilder
from agent_mux.run.approvals import InteractionResponder
from agent_mux.run.base import BaseRun, RunState, check_terminal_size, state_after
from agent_mux.run.interaction import InteractionChannel
from agent_mux.run.ledger import Ledger
from agent_mux.run.result import RunError, RunResult
from agent_mux.sdk.codec import AnyAction, Delivery
from agent_mux.sdk.interactions import Responder
from agent_mux.sdk.options import RunOptions

if TYPE_CHECKING:
    from agent_mux.run.base import Run
    from agent_mux.run.handle import RunHandle

LATE = frozenset({"INTERACTION_NOT_FOUND", "RUN_NOT_ACTIVE"})
"""What an answer is told when somebody else was faster."""
LAST_WORDS = 5.0  # seconds for the answer to `abort` when the run is over
_TEXTS = {"types": "turn_start,message_stop", "accumulated": "false"}


class RemoteRun(BaseRun):
    """One run of a service. `state` and the like are what the service said last, and right after each awaited call."""

    def __init__(
        self,
        line: Line,
        snapshot: Snapshot,
        options: RunOptions,
        *,
        patience: float,
        spawn: Callable[[Callable[[], Any]], None],
    ) -> None:
        """`options`: those that mean something here: callbacks, `collect_events`, `event_buffer_size`.

        `patience`: seconds without any sign of the service. `spawn`: starts a task that lives as long as the client.
        """
        self._line = line
        self._known = snapshot
        self._patience = patience
        self._spawn = spawn
        self._telling = Telling(
            snapshot.run_id, snapshot.agent, size=options.event_buffer_size, collect=options.collect_events
        )
        self._channel = InteractionChannel(snapshot.run_id, lambda: self._pending, self._act, self._require_active)
        self._responder = InteractionResponder(snapshot.run_id, options, self._channel, self._telling.listeners)
        self._pending: tuple[OpenInteraction, ...] = ()
        self._watchers: list[Callable[[RunState], None]] = []
        self._result: RunResult | None = None
        self._started = anyio.Event()
        self._done = anyio.Event()
        self._tasks: anyio.abc.TaskGroup | None = None
        self._path = f"/v1/runs/{snapshot.run_id}"

    @property
    def run_id(self) -> str:
        """ULID of the run."""
        return self._known.run_id

    @property
    def agent(self) -> str:
        """Registered name of the agent."""
        return self._known.agent

    @property
    def model(self) -> str | None:
        """The model, as the agent says, else as asked for."""
        return self._known.model if self._result is None else self._result.model

    @property
    def session_id(self) -> str | None:
        """The agent's own session id, once known."""
        return self._known.session_id if self._result is None else self._result.session_id

    @property
    def state(self) -> RunState:
        """Where the run is."""
        return self._known.state

    @property
    def is_busy(self) -> bool:
        """The agent has a prompt that it has not dealt with."""
        return not self._known.is_over and self._known.is_busy

    @property
    def event_count(self) -> int:
        """The number of events so far."""
        return max(self._telling.count, self._known.event_count)

    @property
    def queue_position(self) -> int | None:
        """Where the run stands in the queue of the service: 1 is next. None: it does not wait."""
        return None if self._known.is_over else self._known.queue_position

    @property
    def journal(self) -> str | None:
        """Path of the run's recording, on the machine of the service."""
        return self._known.journal if self._result is None else self._result.journal

    @property
    def interaction(self) -> InteractionChannel:
        """What the agent waits for, and a way to answer."""
        return self._channel

    # -- consuming

    def events(self, start: int = 0) -> RemoteReader:
        """Every event from number `start`, from the first by default, however late or slow this reader is."""
        return self._telling.read(start, self._catch_up)

    def _catch_up(self) -> Catching | None:
        stream = Stream(self._line, self.run_id, patience=self._patience)
        catching = Catching(stream, self._telling.asides)
        try:
            self._spawn(catching.run)
        except AgentMuxError:  # the client is closed
            return None
        return catching

    def on(self, event_type: str, handler: Callable[[Any], Any]) -> Self:
        """Call `handler` for each event of a type (`*`: all), as it comes. It must not block."""
        self._telling.listeners.on(event_type, handler)
        return self

    def once(self, event_type: str, handler: Callable[[Any], Any]) -> Self:
        """As `on`, for the next event only."""
        self._telling.listeners.on(event_type, handler, once=True)
        return self

    def off(self, event_type: str, handler: Callable[[Any], Any]) -> Self:
        """Call it no more."""
        self._telling.listeners.off(event_type, handler)
        return self

    def on_state(self, callback: Callable[[RunState], None]) -> None:
        """Call back at each change of `state` that is heard of, with the new one. It must not block or raise.

        A state that did not last as long as it takes to tell of it may be left out.
        """
        self._watchers.append(callback)

    async def result(self) -> RunResult:
        """How the run ended. Waits for it; never raises for what the agent did.

        Where the service cannot be reached any more: `truncated`, with what is known.
        """
        await self._done.wait()
        assert self._result is not None  # noqa: S101  # it is set before
        return self._result

    # -- talking

    async def approve(self, *, always: bool = False) -> Delivery:
        """Allow the oldest pending approval. Raises NO_PENDING_INTERACTION when nothing waits."""
        return await self._tell("approve", {"always": always})

    async def deny(self, reason: str | None = None) -> Delivery:
        """Refuse the oldest pending approval. Raises NO_PENDING_INTERACTION when nothing waits."""
        return await self._tell("deny", {"reason": reason})

    async def _act(self, action: AnyAction) -> Delivery:
        return await self._tell(*request_for(action))

    async def _wait_until_begun(self) -> None:
        await self._started.wait()

    def _require_active(self) -> None:
        if self._known.is_over:
            raise AgentMuxError("RUN_NOT_ACTIVE", f"run {self.run_id} is over ({self.state}); start a new one")

    async def _tell(self, command: str, told: Any = None) -> Delivery:
        await self._wait_until_begun()
        self._require_active()
        answer = await self._line.ask("POST", f"{self._path}/{command}", {} if told is None else told)
        return self._heard(answer)

    def _heard(self, answer: bytes) -> Delivery:
        told: Told = decoded(answer, Told)
        self._see(told.run)
        return told.delivery

    # -- controlling

    async def interrupt(self) -> Delivery:
        """Stop the agent's current operation. As `RunHandle.interrupt`."""
        return await self._tell("interrupt")

    async def resize(self, columns: int, rows: int) -> None:
        """Give the agent's terminal another size. As `RunHandle.resize`."""
        check_terminal_size(columns, rows)
        await self._tell("resize", {"columns": columns, "rows": rows})

    async def close(self) -> Delivery:
        """No more prompts will come. As `RunHandle.close`."""
        return await self._tell("close")

    async def pause(self) -> Delivery:
        """Stop all processes of the run. As `RunHandle.pause`."""
        return await self._tell("pause")

    async def resume(self) -> Delivery:
        """Let them go on. As `RunHandle.resume`."""
        return await self._tell("resume")

    async def abort(self) -> Delivery:
        """End the run. Returns when it is over. As `RunHandle.abort`; raises UNAVAILABLE without the service."""
        if self._known.is_over:
            await self._done.wait()
            return "unneeded"
        delivery: Delivery = "applied"
        async with self._until_over():
            try:
                answer = await self._line.ask("POST", f"{self._path}/abort", {}, again=True, patience=float("inf"))
                delivery = self._heard(answer)
            except AgentMuxError as error:
                if error.code not in LATE:
                    raise
                delivery = "unneeded"
        await self._done.wait()
        return delivery

    @asynccontextmanager
    async def _until_over(self) -> AsyncIterator[None]:
        """Wait for an answer no longer than the run lasts, and a little."""
        with anyio.CancelScope() as scope:

            async def limit() -> None:
                await self._done.wait()
                scope.deadline = anyio.current_time() + LAST_WORDS

            if self._tasks is not None and not self._done.is_set():
                self._tasks.start_soon(limit)
            yield

    def kill(self) -> None:
        """End the run at once. It is on its way when this returns. As `RunHandle.kill`."""
        if not self._known.is_over:
            self._spawn(self._kill)

    async def _kill(self) -> None:
        try:
            self._heard(await self._line.ask("POST", f"{self._path}/kill", {}, again=True))
        except AgentMuxError as error:
            if error.code not in LATE:
                self._telling.warn(f"the run could not be killed: {error}")

    def answer_with(self, on_approval_request: Responder | None, on_input_required: Responder | None) -> None:
        """Call these for what is pending, and will be. The service was not told of them: only what it leaves open."""
        options = RunOptions(
            agent="-", prompt="-", on_approval_request=on_approval_request, on_input_required=on_input_required
        )
        self._responder = InteractionResponder(self.run_id, options, self._channel, self._telling.listeners)
        self._settle()

    def warn(self, message: str) -> None:
        """Put a warning of this end among the events."""
        self._telling.warn(message)

    # -- its life

    async def live(self) -> None:
        """Follow the run to its end. Cancelled, it is left alone."""
        stream = Stream(self._line, self.run_id, patience=self._patience, snapshots=True)
        why = "the client was closed, and the run goes on"
        try:
            async with anyio.create_task_group() as self._tasks:
                self._settle()
                try:
                    await stream.follow(self._take)
                except AgentMuxError as error:
                    why = f"the service tells no more of it, and it may go on: {error.message}"
                self._tasks.cancel_scope.cancel()
        finally:
            self._tasks = None
            if self._result is None:
                self._lose(why)

    async def _take(self, news: News) -> None:
        if isinstance(news, Snapshot):
            self._see(news)
        elif isinstance(news, list):
            self._telling.tell(news)
        else:
            self._finish(self._telling.result(news, self._derived))  # type: ignore[arg-type]  # a mapping is left

    def _see(self, snapshot: Snapshot) -> None:
        """How the run is now, unless something later is known."""
        if snapshot.follows(self._known):
            before, self._known = self._known.state, snapshot
            self._settle()
            if snapshot.state != before:
                for tell in self._watchers:
                    tell(snapshot.state)

    def _settle(self) -> None:
        known = self._known
        self._pending = () if known.is_over else tuple(one.opened() for one in known.pending)
        if known.state != "spawned":
            self._started.set()
        for request, decision in self._responder.decide(self._pending):
            if decision == "ask" and self._tasks is not None:
                self._tasks.start_soon(self._ask, request)

    async def _ask(self, request: OpenInteraction) -> None:
        action = await self._responder.ask_callback(request)
        if action is None or request not in self._pending:
            return
        try:
            await self._act(action)
        except AgentMuxError as error:
            if error.code not in LATE:
                self._telling.warn(f"the answer to {request.interaction_id} did not arrive: {error}")

    def _finish(self, result: RunResult) -> None:
        self._result = result
        self._see(Snapshot(self.run_id, self.agent, state_after(result.exit_reason)))
        self._pending = ()
        self._started.set()
        self._telling.close()
        self._done.set()

    def _lose(self, why: str) -> None:
        """Nothing more will be heard of it."""
        self._telling.warn(why)
        known = {"type": "run_result", "runId": self.run_id, "agent": self.agent, "model": self.model}
        known |= {"sessionId": self.session_id, "journal": self.journal, "exitReason": "truncated"}
        told = {**known, "durationMs": 0, "turnCount": 0, "ledger": Ledger().to_dict()}
        told["error"] = {"code": RunError("TIMEOUT", why).code, "message": why, "recoverable": True}
        self._finish(self._telling.result(told, self._derived))

    def _derived(self) -> Sequence[AgentEvent]:
        """The messages of the run, asked for again. Blocking."""
        query = "&".join(f"{name}={value}" for name, value in _TEXTS.items())
        lines = self._line.ask_blocking("GET", f"{self._path}/events?{query}", accept="application/jsonl").splitlines()
        rebuilder = Rebuilder()
        return [rebuilder.decode(line) for line in lines[:-1]]  # type: ignore[misc]  # the last one is the result


if TYPE_CHECKING:

    def _both_are_runs(here: RunHandle, there: RemoteRun) -> tuple[Run, Run]:
        return here, there
