"""The handle of a run that works at a service. It has the interface of `RunHandle`, over HTTP."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import anyio.abc

from agent_mux.client.remote.connection import ServiceConnection
from agent_mux.client.remote.protocol import CommandResponse, Snapshot, command_of
from agent_mux.client.remote.publisher import CatchUpStream, EventPublisher, RemoteReader
from agent_mux.client.remote.responses import decode_response
from agent_mux.client.remote.stream import EventStream, RunStream, StreamItem
from agent_mux.errors import AgentMuxError
from agent_mux.events import AgentEvent, Rebuilder
from agent_mux.run.base import (
    BaseRun,
    RunState,
    check_approval_mode,
    check_model,
    check_terminal_size,
    report_state,
    state_after,
)
from agent_mux.run.callbacks import CORRECTABLE, CallbackResponder, InteractionPort
from agent_mux.run.handlers import check_handler
from agent_mux.run.interaction import InteractionChannel
from agent_mux.run.ledger import Ledger
from agent_mux.run.result import RunResult
from agent_mux.sdk.codec import AnyAction, Delivery, Refuse
from agent_mux.sdk.interactions import Responder
from agent_mux.sdk.options import ApprovalMode, RunOptions

if TYPE_CHECKING:
    from agent_mux.run.base import Run
    from agent_mux.run.handle import RunHandle

TOO_LATE = frozenset({"INTERACTION_NOT_FOUND", "RUN_NOT_ACTIVE"})
"""The error codes of an answer or a command that arrives after another client's, or after the end of the run."""
ABORT_RESPONSE_TIMEOUT = 5.0  # seconds to wait for the response to `abort` after the run has ended
_MESSAGES_QUERY = {"types": "turn_start,turn_end,message_stop,retry", "accumulated": "false"}


class RemoteRun(BaseRun):
    """The handle of one run of a service.

    Its properties show the latest state that the service has sent; they are current right after each awaited call.

    In addition to the errors of `RunHandle`, every command raises UNAVAILABLE when the service cannot be reached, and
    UNAUTHENTICATED or FORBIDDEN when the token does not allow it.
    """

    _closed_reason = "the client was closed; the run continues at the service"

    def __init__(
        self,
        connection: ServiceConnection,
        snapshot: Snapshot,
        options: RunOptions,
        *,
        reconnect_for: float,
        spawn: Callable[[Callable[[], Any]], None],
    ) -> None:
        """Create the handle of a run. `RemoteMux` does this; `follow` must run for the handle to work.

        Args:
            connection: The service.
            snapshot: The state of the run.
            options: The options that concern the client: callbacks, `collect_events`, `event_buffer_size`.
            reconnect_for: Seconds without any bytes from the service after which the run is given up.
            spawn: Starts a task that lives as long as the client.
        """
        self._connection = connection
        self._snapshot = snapshot
        self._reconnect_for = reconnect_for
        self._spawn = spawn
        self._publisher = EventPublisher(
            snapshot.run_id, snapshot.agent, size=options.event_buffer_size, collect=options.collect_events
        )
        self._channel = InteractionChannel(snapshot.run_id, lambda: self._pending, self._act, self._require_active)
        self._port = self._new_port()
        self._callbacks = CallbackResponder(options, self._port)
        self._pending = snapshot.open_interactions()
        self._state_callbacks: list[Callable[[RunState], None]] = []
        self._result: RunResult | None = None
        self._started = anyio.Event()
        self._done = anyio.Event()
        self._tasks: anyio.abc.TaskGroup | None = None
        self._path = f"/v1/runs/{snapshot.run_id}"

    @property
    def run_id(self) -> str:
        """The ULID of the run."""
        return self._snapshot.run_id

    @property
    def agent(self) -> str:
        """The registered name of the agent."""
        return self._snapshot.agent

    @property
    def model(self) -> str | None:
        """The model that the agent reports, until then the requested one; None when both are unknown."""
        return self._snapshot.model if self._result is None else self._result.model

    @property
    def session_id(self) -> str | None:
        """The agent's own session id, None until it is known."""
        return self._snapshot.session_id if self._result is None else self._result.session_id

    @property
    def state(self) -> RunState:
        """The state of the run."""
        return self._snapshot.state

    @property
    def is_busy(self) -> bool:
        """Whether the agent has a prompt that it has not finished."""
        return not self._snapshot.is_over and self._snapshot.is_busy

    @property
    def event_count(self) -> int:
        """The number of events so far."""
        return max(self._publisher.count, self._snapshot.event_count)

    @property
    def queue_position(self) -> int | None:
        """The position in the service's queue of waiting runs, from 1; None when the run does not wait."""
        return None if self._snapshot.is_over else self._snapshot.queue_position

    @property
    def journal(self) -> str | None:
        """The path of the run's recording on the service's machine, None when there is none."""
        return self._snapshot.journal if self._result is None else self._result.journal

    @property
    def interaction(self) -> InteractionChannel:
        """The pending approvals and questions, and the methods that answer them."""
        return self._channel

    # -- consuming

    def events(self, start: int = 0) -> RemoteReader:
        """Return an iterator over all events from number `start`, however late or slow the reader is."""
        return self._publisher.read(start, self._catch_up)

    def _catch_up(self) -> CatchUpStream | None:
        catch_up = CatchUpStream(self._open_stream(snapshots=False), self._publisher.local_events)
        try:
            self._spawn(catch_up.run)
        except AgentMuxError:  # the client is closed
            return None
        return catch_up

    def _add_handler(self, event_type: str, handler: Callable[[Any], object], *, once: bool) -> None:
        self._publisher.listeners.on(event_type, handler, once=once)

    def _remove_handler(self, event_type: str, handler: Callable[[Any], object]) -> None:
        self._publisher.listeners.off(event_type, handler)

    def on_state(self, callback: Callable[[RunState], None]) -> None:
        """Call `callback` with the new state at each change of `state` that arrives. It must not block.

        States that last only briefly may be missing, because the service sends the latest state only.
        """
        self._state_callbacks.append(check_handler(callback, "a callback of on_state"))

    async def result(self) -> RunResult:
        """Wait until the run has ended and return its result, whatever the exit reason.

        If the service stays unreachable, the exit reason is `lost` and the error RUN_LOST, which is recoverable: the
        run may continue at the service, and `RemoteMux.attach` follows it again.
        """
        await self._done.wait()
        assert self._result is not None  # noqa: S101  # `_finish` sets it first
        return self._result

    # -- talking

    async def approve(self, *, always: bool = False) -> Delivery:
        """Approve the oldest pending approval. Raises NO_PENDING_INTERACTION when there is none."""
        return await self._send_command("approve", {"always": always})

    async def deny(self, reason: str | None = None) -> Delivery:
        """Deny the oldest pending approval. Raises NO_PENDING_INTERACTION when there is none."""
        return await self._send_command("deny", {"reason": reason})

    async def _act(self, action: AnyAction) -> Delivery:
        return await self._send_command(*command_of(action))

    async def _wait_until_begun(self) -> None:
        await self._started.wait()

    def _require_active(self) -> None:
        if self._snapshot.is_over:
            raise AgentMuxError("RUN_NOT_ACTIVE", f"run {self.run_id} is over ({self.state}); start a new one")

    async def _send_command(self, command: str, payload: Any = None) -> Delivery:
        await self._wait_until_begun()
        self._require_active()
        body = {} if payload is None else payload
        return self._apply(await self._request(command, body))

    async def _request(self, command: str, body: Any, *, is_final: bool = False) -> bytes:
        """Send a command and return the response. `is_final`: it ends the run and may be sent again."""
        path = f"{self._path}/{command}"
        if command == "abort":
            return await self._connection.request("POST", path, body, is_idempotent=True, timeout=float("inf"))
        return await self._connection.request("POST", path, body, is_idempotent=is_final)

    def _apply(self, body: bytes) -> Delivery:
        """Update the state from the response to a command and return its delivery."""
        response: CommandResponse = decode_response(body, CommandResponse)
        self._update(response.run)
        return response.delivery

    # -- controlling

    async def set_model(self, model: str) -> Delivery:
        """Use another model. See `RunHandle.set_model`."""
        check_model(model)
        return await self._send_command("set-model", {"model": model})

    async def set_approval_mode(self, mode: ApprovalMode) -> Delivery:
        """Continue in another approval mode. See `RunHandle.set_approval_mode`."""
        check_approval_mode(mode)
        return await self._send_command("set-approval-mode", {"mode": mode})

    async def interrupt(self) -> Delivery:
        """Stop the agent's current operation. See `RunHandle.interrupt`."""
        return await self._send_command("interrupt")

    async def resize(self, columns: int, rows: int) -> None:
        """Change the size of the agent's terminal, in characters. See `RunHandle.resize`."""
        check_terminal_size(columns, rows)
        await self._send_command("resize", {"columns": columns, "rows": rows})

    async def close(self) -> Delivery:
        """End the run once the agent has processed all its prompts. See `RunHandle.close`."""
        return await self._send_command("close")

    async def pause(self) -> Delivery:
        """Stop all processes of the run until `resume`. See `RunHandle.pause`."""
        return await self._send_command("pause")

    async def resume(self) -> Delivery:
        """Continue the processes of a paused run. See `RunHandle.resume`."""
        return await self._send_command("resume")

    async def abort(self) -> Delivery:
        """Abort the run and return when it has ended. See `RunHandle.abort`."""
        if self._snapshot.is_over:
            await self._done.wait()
            return "unneeded"
        delivery: Delivery = "applied"
        async with self._cancelled_after_end():
            try:
                delivery = self._apply(await self._request("abort", {}, is_final=True))
            except AgentMuxError as error:
                if error.code not in TOO_LATE:
                    raise
                delivery = "unneeded"
        await self._done.wait()
        return delivery

    @asynccontextmanager
    async def _cancelled_after_end(self) -> AsyncIterator[None]:
        """Cancel the block `ABORT_RESPONSE_TIMEOUT` seconds after the run has ended."""
        with anyio.CancelScope() as scope:

            async def limit() -> None:
                await self._done.wait()
                scope.deadline = anyio.current_time() + ABORT_RESPONSE_TIMEOUT

            if self._tasks is not None and not self._done.is_set():
                self._tasks.start_soon(limit)
            yield

    def kill(self) -> None:
        """Kill all processes of the run. Returns before the request has been sent. See `RunHandle.kill`."""
        if not self._snapshot.is_over:
            self._spawn(self._kill)

    async def _kill(self) -> None:
        try:
            self._apply(await self._request("kill", {}, is_final=True))
        except AgentMuxError as error:
            if error.code not in TOO_LATE:
                self._publisher.warn(f"the run could not be killed: {error}")

    def answer_with(self, on_approval_request: Responder | None, on_input_required: Responder | None) -> None:
        """Answer pending and future interactions with these callbacks, which replace those of the options.

        They are called for interactions that the service leaves open.
        """
        options = RunOptions(
            agent="-", prompt="-", on_approval_request=on_approval_request, on_input_required=on_input_required
        )
        self._port = self._new_port()  # pending requests are new to these callbacks
        self._callbacks = CallbackResponder(options, self._port)
        self._apply_snapshot()

    def warn(self, message: str) -> None:
        """Insert a warning of the client among the events of the run."""
        self._publisher.warn(message)

    # -- following the run

    async def follow(self) -> None:
        """Receive the events of the run until it is over. If this is cancelled, the run continues at the service."""
        stream = self._open_stream(snapshots=True)
        reason = self._closed_reason
        try:
            async with anyio.create_task_group() as self._tasks:
                self._apply_snapshot()
                try:
                    await stream.follow(self._receive)
                except AgentMuxError as error:
                    reason = f"no more events can be received, and the run may continue: {error.message}"
                self._tasks.cancel_scope.cancel()
        finally:
            self._tasks = None
            if self._result is None:
                self._give_up(reason)

    def _open_stream(self, *, snapshots: bool) -> EventStream:
        """Return a new stream of all events; `snapshots`: and of the changes of the state."""
        return RunStream(self._connection, self.run_id, reconnect_for=self._reconnect_for, snapshots=snapshots)

    async def _receive(self, item: StreamItem) -> None:
        if isinstance(item, Snapshot):
            self._update(item)
        elif isinstance(item, list):
            self._publisher.publish(item)
        else:
            self._finish(self._publisher.build_result(item, self._fetch_messages))  # type: ignore[arg-type]  # a mapping is left

    def _update(self, snapshot: Snapshot) -> None:
        """Adopt a snapshot, unless a newer one is known."""
        if snapshot.is_newer_than(self._snapshot):
            before, self._snapshot = self._snapshot.state, snapshot
            self._apply_snapshot()
            if snapshot.state != before:
                report_state(self._state_callbacks, snapshot.state)

    def _apply_snapshot(self) -> None:
        """Update the pending interactions from the snapshot and call the consumer's callbacks for new ones."""
        snapshot = self._snapshot
        self._pending = snapshot.open_interactions()
        if snapshot.state != "spawned":
            self._started.set()
        for request in self._port.new_requests():
            if self._tasks is not None and self._callbacks.callback_for(request) is not None:
                self._tasks.start_soon(self._callbacks.ask, request)

    def _new_port(self) -> InteractionPort:
        return InteractionPort(
            run_id=self.run_id,
            pending=lambda: self._pending,
            deliver=self._deliver,
            note=self._publisher.warn,
            fail=self._publisher.report_error,
            listeners=self._publisher.listeners,
            channel=self._channel,
        )

    async def _deliver(self, action: AnyAction) -> Refuse | None:
        try:
            await self._act(action)
        except AgentMuxError as error:
            if error.code in CORRECTABLE:
                return Refuse("VALIDATION_ERROR", error.message)
            if error.code not in TOO_LATE:
                self._publisher.warn(f"an answer to {self.agent} did not arrive: {error}")
        return None

    def _finish(self, result: RunResult) -> None:
        self._result = result
        self._update(Snapshot(self.run_id, self.agent, state_after(result.exit_reason)))
        self._pending = ()
        self._started.set()
        self._publisher.close()
        self._done.set()

    def _give_up(self, reason: str) -> None:
        """Finish as `lost`, because nothing more of the run will be received."""
        self._publisher.warn(reason)
        fields = {"type": "run_result", "runId": self.run_id, "agent": self.agent, "model": self.model}
        fields |= {"sessionId": self.session_id, "journal": self.journal, "exitReason": "lost"}
        result = {**fields, "durationMs": 0, "turnCount": 0, "ledger": Ledger().to_dict()}
        result["error"] = {"code": "RUN_LOST", "message": reason, "recoverable": True}
        self._finish(self._publisher.build_result(result, self._fetch_messages))

    def _fetch_messages(self) -> Sequence[AgentEvent]:
        """Return the events of the run that contain its messages. Blocking; raises as a request does."""
        query = "&".join(f"{name}={value}" for name, value in _MESSAGES_QUERY.items())
        path = f"{self._path}/events?{query}"
        lines = self._connection.request_blocking("GET", path, accept="application/jsonl").splitlines()
        rebuilder = Rebuilder()
        return [rebuilder.decode(line) for line in lines[:-1]]  # type: ignore[misc]  # the last one is the result


if TYPE_CHECKING:

    def _both_are_runs(local: RunHandle, remote: RemoteRun) -> tuple[Run, Run]:
        return local, remote
