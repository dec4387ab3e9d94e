"""A run over a WebSocket: events and command results go out, commands come in.

Every text message is one JSON object, the same as the lines of `amux run --interactive --json`. Events are read at the
client's speed, as for every other reader: nothing is queued for a slow client. Commands are executed one after the
other; `abort`, `kill` and `status` do not wait for earlier ones.

The token is checked with each message in either direction, and several times a second in between. When it is no longer
valid, the connection is closed with 4401; commands that are still waiting are not executed.
"""

from contextlib import aclosing, suppress
from typing import Any

import anyio
import anyio.abc
from starlette.websockets import WebSocket, WebSocketDisconnect

from agent_mux.errors import AgentMuxError
from agent_mux.events import AgentEvent
from agent_mux.run import commands
from agent_mux.service.audit.entries import Actor
from agent_mux.service.control import execute_recorded
from agent_mux.service.http_streams import EventSelection, Frame
from agent_mux.service.pieces import PARTS, PIECE
from agent_mux.service.problems import STATUS
from agent_mux.service.runs.event_cache import EncodedEvent
from agent_mux.service.runs.streaming import consumed
from agent_mux.service.security.admission import NO_LONGER, STEP
from agent_mux.service.security.tokens import Caller
from agent_mux.service.service import Service

MAX_WAITING_COMMANDS = 32
"""Commands that may wait for the one being executed; further ones are refused. A client that awaits results has one."""
LONGEST_REASON = 123  # bytes; RFC 6455, section 5.5
ANSWER_GRACE = 2.0  # seconds for commands that are being executed when the run ends
CLOSE_GRACE = 2.0  # seconds for the close frame to a client that may not be reading


def plain_frame(_: int) -> tuple[bytes, bytes]:
    """Frame an event without its number."""
    return b"", b""


def numbered_frame(number: int) -> tuple[bytes, bytes]:
    """Frame an event with its number, from which a client can resume. Command results have no such envelope."""
    return b'{"id":%d,"event":' % number, b"}"


def close_code(error: AgentMuxError) -> tuple[int, str]:
    """Return code and reason for closing with an error: 4000 plus the HTTP status of the same error."""
    reason = f"{error.code}: {error.message}".encode()[:LONGEST_REASON]
    return 4000 + STATUS.get(error.code, 500), reason.decode(errors="ignore")


class RunWebSocket:
    """The connection of one client to one run."""

    def __init__(  # noqa: PLR0913  # the connection, the run and the format
        self,
        websocket: WebSocket,
        service: Service,
        run_id: str,
        *,
        actor: Actor,
        selection: EventSelection,
        caller: Caller,
        frame: Frame = plain_frame,
    ) -> None:
        """`actor`: who the audit trail names. `caller`: commands other than `status` need its scope `run`."""
        self._websocket = websocket
        self._service = service
        self._run_id = run_id
        self._actor = actor
        self._selection = selection
        self._frame = frame
        self._caller = caller
        self._is_open = True
        self._is_admitted = True
        """False once the caller may not even read any more."""
        self._has_ended = False
        self._sending = anyio.Lock()
        self._command_sender, self._command_receiver = anyio.create_memory_object_stream[commands.AnyCommand](
            MAX_WAITING_COMMANDS
        )
        self._commands_done = anyio.Event()

    async def serve(self) -> None:
        """Serve until the run has ended or the client has left. Commands received by then are executed nevertheless."""
        async with anyio.create_task_group() as self._tasks:
            self._tasks.start_soon(self._run_commands)
            try:
                async with anyio.create_task_group() as exchange:
                    self._exchange = exchange.cancel_scope
                    async with self._service.authenticator.watching(self._caller, "read", self._lose):
                        exchange.start_soon(self._receive, exchange.cancel_scope)
                        await self._send_events_or_close()
                        exchange.cancel_scope.cancel()
                if not self._is_admitted:
                    with anyio.move_on_after(CLOSE_GRACE):
                        await self._close(*close_code(_no_longer_admitted()))
            finally:
                self._is_open = False
                self._command_sender.close()

    # -- the caller

    def _lose(self) -> None:
        """Stop, because the caller is no longer admitted: nothing more is sent or executed."""
        self._is_admitted = False
        self._exchange.cancel()

    async def _require_admitted(self) -> None:
        """Take over the present scopes and limits of the caller. Raises UNAUTHENTICATED when it may not read."""
        current = await self._service.authenticator.recheck(self._caller)
        if current is None or not current.may("read"):
            self._lose()
            raise _no_longer_admitted()
        self._caller = current

    # -- out

    async def _send_events_or_close(self) -> None:
        try:
            await self._send_events()
        except AgentMuxError as error:  # the journal or the database is unavailable
            await self._close(*close_code(error))

    async def _send_events(self) -> None:
        end = self._selection.start
        types = self._selection.types
        async with aclosing(self._service.streams.batches(self._run_id, end)) as batches:
            async for batch in batches:
                end = batch[0] + len(batch[1])
                for number, event in consumed(batch):
                    if types is None or event.type in types:
                        encoded = self._encoded(number, event)  # held until it is sent
                        del event
                        await self._send_line(number, encoded.line)
        result = await self._service.streams.result(self._run_id)
        self._has_ended = True
        self._command_sender.close()
        with anyio.move_on_after(ANSWER_GRACE):
            await self._commands_done.wait()
        if result is None:
            await self._close(*self._no_result())
        else:
            await self._send_line(end, result)
            await self._close(1000)

    def _no_result(self) -> tuple[int, str]:
        try:
            self._service.starter.require_accepting()
        except AgentMuxError as error:  # the run was waiting to start; it is queued again after a restart
            return 1012, error.message
        return close_code(
            AgentMuxError("RUN_NOT_FOUND", f"run {self._run_id} was deleted; list runs with GET /v1/runs")
        )

    def _encoded(self, number: int, event: AgentEvent) -> EncodedEvent:
        cache, accumulated = self._service.event_cache, self._selection.accumulated
        return cache.encoded(self._run_id, number, event, accumulated=accumulated)

    async def _send_line(self, number: int, line: bytes) -> None:
        before, after = self._frame(number)
        if len(line) <= PIECE:
            await self._send(b"".join((before, line, after)).decode())
            return
        async with self._sending:
            if self._is_open:
                try:
                    await self._websocket.send({"type": "websocket.send", PARTS: (before, line, after)})
                except WebSocketDisconnect:
                    self._is_open = False

    async def _send(self, text: str) -> None:
        async with self._sending:
            if self._is_admitted and not self._service.authenticator.admits(self._caller, "read"):
                self._lose()
            if self._is_open and self._is_admitted:
                try:
                    await self._websocket.send_text(text)
                except WebSocketDisconnect:
                    self._is_open = False  # `_receive` gets the disconnect, too

    async def _close(self, code: int, reason: str = "") -> None:
        async with self._sending:
            if self._is_open:
                self._is_open = False
                with suppress(WebSocketDisconnect):
                    await self._websocket.close(code, reason)

    # -- in

    async def _receive(self, scope: anyio.CancelScope) -> None:
        while (message := await self._websocket.receive())["type"] != "websocket.disconnect":
            try:
                await self._dispatch(_parse_command(message.get("text")))
            except commands.InvalidCommandError as error:
                wrong = AgentMuxError("VALIDATION_ERROR", str(error))
                await self._send(commands.command_error(wrong, error.command, error.id))
        self._is_open = False
        scope.cancel()

    async def _dispatch(self, command: commands.AnyCommand) -> None:
        try:
            await self._require_admitted()
        except AgentMuxError as error:
            refusal: AgentMuxError | None = error
        else:
            refusal = self._refusal(command)
        if refusal is not None:
            await self._send(commands.command_error(refusal, commands.command_name(command), command.id))
        elif isinstance(command, commands.AbortCommand):
            self._tasks.start_soon(self._abort, command)
            await self._send(commands.ack(command))
        elif isinstance(command, commands.KillCommand | commands.StatusCommand) or self._has_ended:
            await self._execute(command)
        else:
            self._command_sender.send_nowait(command)

    def _refusal(self, command: commands.AnyCommand) -> AgentMuxError | None:
        if not self._may(command):
            return _may_only_read()
        is_urgent = isinstance(command, commands.AbortCommand | commands.KillCommand)
        try:
            self._service.limiter.take(self._caller, "requests", may_refuse=not is_urgent)
        except AgentMuxError as error:
            return error
        if self._command_sender.statistics().current_buffer_used >= MAX_WAITING_COMMANDS and not is_urgent:
            return AgentMuxError(
                "LIMIT_EXCEEDED",
                f"{MAX_WAITING_COMMANDS} commands are waiting; await their results first",
            )
        return None

    def _may(self, command: commands.AnyCommand) -> bool:
        return self._caller.may("run") or isinstance(command, commands.StatusCommand)

    async def _abort(self, command: commands.AbortCommand) -> None:
        """Abort the run.

        The acknowledgement precedes the end of the run, and the abort continues if the client leaves.
        """
        with anyio.CancelScope(shield=True):
            with suppress(AgentMuxError):  # the run has ended meanwhile
                await self._execute_recorded(command)

    async def _run_commands(self) -> None:
        """Execute queued commands in order, each to its end: a client that leaves interrupts none."""
        with anyio.CancelScope(shield=True):
            async with aclosing(self._command_receiver) as received:
                async for command in received:
                    await self._execute(command)
        self._commands_done.set()

    async def _execute(self, command: commands.AnyCommand) -> None:
        try:
            await self._require_admitted()  # it may have waited
            if not self._may(command):
                raise _may_only_read()
            if isinstance(command, commands.StatusCommand):
                answer = commands.ack(command, run=await self._service.runs.get(self._run_id, full=False))
            else:
                answer = commands.ack(command, **await self._execute_recorded(command))
        except AgentMuxError as error:
            answer = commands.command_error(error, commands.command_name(command), command.id)
        await self._send(answer)

    async def _execute_recorded(self, command: commands.AnyCommand) -> dict[str, Any]:
        return await execute_recorded(self._service, self._actor, self._run_id, command)


def _no_longer_admitted() -> AgentMuxError:
    return AgentMuxError("UNAUTHENTICATED", f"{NO_LONGER}; {STEP}")


def _may_only_read() -> AgentMuxError:
    return AgentMuxError("FORBIDDEN", "this token may only read; use one with the scope run")


def _parse_command(text: str | None) -> commands.AnyCommand:
    """Parse a message. Raises `NoCommand`; unlike a line typed by a person, text that is not JSON is not a prompt."""
    command = commands.read_command(text.encode()) if text is not None and text.lstrip().startswith("{") else None
    if command is None:
        raise commands.InvalidCommandError("a message has to be a JSON object with a type; see `amux schema command`")
    return command
