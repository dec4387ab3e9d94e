"""The run's side of the control socket. Nothing that a client does, or leaves undone, delays the run.

Each subscriber has its own reader of the events, which continues from the journal when the subscriber is slow, so
memory does not grow. The number of connections, the length of a line and the time without a command are limited.
"""

import logging
import socket
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import anyio.abc
from anyio import lowlevel

from agent_mux._util.logs import LOGGER
from agent_mux._util.sanitize import to_json_bytes
from agent_mux.control import places
from agent_mux.control.messages import (
    MAX_REQUEST,
    PROTOCOL,
    VERSION,
    ControlCommand,
    RunSnapshot,
    SubscribeCommand,
    decode_command,
    snapshot_of,
)
from agent_mux.control.peer import Peer, is_agent, is_allowed, peer_of
from agent_mux.errors import AgentMuxError
from agent_mux.events import AgentEvent, encode_event
from agent_mux.run.commands import InvalidCommandError, StatusCommand, ack, command_error, command_name, execute_command
from agent_mux.run.handle import RunHandle
from agent_mux.run.readers import EventReader

MAX_CONNECTIONS = 32
IDLE_TIMEOUT = 60.0  # seconds without a command, for connections that receive no events
DRAIN_TIMEOUT = 0.5  # seconds after the end of the run in which clients receive the rest; it is also in the journal
CHUNK = 1 << 16  # bytes that are encoded before they are written
_READ_SIZE = 1 << 16
_STATE_INTERVAL = 0.05  # seconds between two messages about the state


async def serve_run(run: RunHandle, config_dir: Path) -> None:
    """Own the control socket of a run until the run is over. A socket that cannot be created is logged."""
    try:
        listener, path = places.listen(config_dir, run.run_id)
    except OSError as error:
        logging.getLogger(LOGGER).warning("run %s has no control socket: %s", run.run_id, error.strerror or error)
        return
    try:
        await ControlServer(run, listener, path).serve()
    finally:
        listener.close()
        places.remove(path)


class ControlServer:
    """Accepts connections for one run."""

    def __init__(self, run: RunHandle, listener: socket.socket, path: Path) -> None:
        self._run = run
        self._listener = listener
        self._path = path
        self._clients: set[ClientConnection] = set()
        self._changed = anyio.Event()
        run.on_state(lambda _: self.notify_changed())

    async def serve(self) -> None:
        """Serve until the run is over and its clients have received the rest, or were too slow."""
        async with anyio.create_task_group() as tasks:
            with anyio.CancelScope() as accepting:
                tasks.start_soon(self._stop_accepting, accepting)
                await self._accept(tasks)
            self._listener.close()
            places.remove(self._path)
            with anyio.move_on_after(DRAIN_TIMEOUT):
                while any(client.is_owed for client in self._clients):
                    await self.changed()
            tasks.cancel_scope.cancel()

    async def _stop_accepting(self, accepting: anyio.CancelScope) -> None:
        with suppress(AgentMuxError):  # a run without a result is over, too; subscribers receive the error
            await self._run.result()
        accepting.cancel()
        self.notify_changed()

    async def _accept(self, tasks: anyio.abc.TaskGroup) -> None:
        while True:
            await anyio.wait_readable(self._listener)
            try:
                connection, _ = self._listener.accept()
            except BlockingIOError:
                continue
            except OSError as error:  # too many open files: those who connected keep their connection
                logging.getLogger(LOGGER).warning("run %s: cannot accept a client: %s", self._run.run_id, error)
                await anyio.sleep(1)
                continue
            connection.setblocking(False)
            client = ClientConnection(self, self._run, connection, peer_of(connection))
            self._clients.add(client)
            tasks.start_soon(self._serve_client, client, connection)

    async def _serve_client(self, client: "ClientConnection", connection: socket.socket) -> None:
        try:
            if is_allowed(client.peer):
                await client.serve(is_full=len(self._clients) > MAX_CONNECTIONS)
        except OSError:
            await lowlevel.checkpoint()  # the client is gone
        finally:
            connection.close()
            self._clients.discard(client)
            self.notify_changed()

    def notify_changed(self) -> None:
        """Wake those who wait for a change of the state."""
        changed, self._changed = self._changed, anyio.Event()
        changed.set()

    async def changed(self) -> None:
        """Wait until the state may have changed."""
        await self._changed.wait()


class ClientConnection:
    """One client of a run."""

    def __init__(self, server: ControlServer, run: RunHandle, connection: socket.socket, peer: Peer) -> None:
        self._server = server
        self._run = run
        self._connection = connection
        self.peer = peer
        self._writing = anyio.Lock()
        self._tasks: anyio.abc.TaskGroup | None = None
        self._is_subscribed = False
        self.is_owed = False
        """Whether the client waits for the response to a command, or for the rest of the events."""
        self._last_state: Sequence[Any] = ()

    async def serve(self, *, is_full: bool) -> None:
        """Execute the client's commands until it disconnects or has received the result."""
        if is_full:
            limit = f"run {self._run.run_id} has {MAX_CONNECTIONS} connections already; close one of them"
            await self._write(_error(AgentMuxError("LIMIT_EXCEEDED", limit)))
            return
        if not is_agent(self.peer, self._run.run_id):
            self._run.interaction.mark_seen()
        hello = {"type": "hello", "protocol": PROTOCOL, "version": VERSION, "run": snapshot_of(self._run)}
        await self._write(to_json_bytes(hello) + b"\n")
        async with anyio.create_task_group() as self._tasks:
            await self._read_commands()
            if not self._is_subscribed:
                self._tasks.cancel_scope.cancel()

    # -- commands

    async def _read_commands(self) -> None:
        partial, is_too_long = bytearray(), False
        while data := await self._read():
            *lines, rest = data.split(b"\n")
            for line in lines:
                partial += line
                if is_too_long or len(partial) > MAX_REQUEST:
                    await self._write(
                        _error(AgentMuxError("VALIDATION_ERROR", f"a line has at most {MAX_REQUEST} bytes"))
                    )
                else:
                    await self._execute_line(bytes(partial))
                partial, is_too_long = bytearray(), False
            partial += rest
            if len(partial) > MAX_REQUEST:
                partial, is_too_long = bytearray(), True
        if self._tasks is not None:
            self._tasks.cancel_scope.cancel()  # its subscription, too

    async def _read(self) -> bytes:
        """Return the next bytes of the client; empty if it has disconnected or is idle."""
        while True:
            with anyio.move_on_after(float("inf") if self._is_subscribed else IDLE_TIMEOUT) as waiting:
                await anyio.wait_readable(self._connection)
            if waiting.cancelled_caught:
                return b""
            try:
                return self._connection.recv(_READ_SIZE)
            except BlockingIOError:
                continue

    async def _execute_line(self, line: bytes) -> None:
        if not line.strip():
            return
        try:
            command = decode_command(line)
        except InvalidCommandError as error:
            await self._write(_error(AgentMuxError("VALIDATION_ERROR", str(error)), error.command, error.id))
            return
        self.is_owed = True
        try:
            data = await self._execute(command)
            await self._write(ack(command, **data, run=snapshot_of(self._run)).encode() + b"\n")
        except AgentMuxError as error:
            await self._write(_error(error, command_name(command), command.id))
            return
        finally:
            self.is_owed = self._is_subscribed
            self._server.notify_changed()
        if isinstance(command, SubscribeCommand) and self._tasks is not None:
            is_of_agent = is_agent(self.peer, self._run.run_id)  # which cannot answer
            events = self._run.internal_events if is_of_agent else self._run.events
            self._tasks.start_soon(self._send_events, events(command.start))
            self._tasks.start_soon(self._send_states)

    async def _execute(self, command: ControlCommand) -> dict[str, Any]:
        if isinstance(command, SubscribeCommand):
            if self._is_subscribed:
                raise AgentMuxError("VALIDATION_ERROR", "this connection is subscribed already")
            self._is_subscribed = True
            return {}
        if not isinstance(command, StatusCommand) and is_agent(self.peer, self._run.run_id):
            message = "processes of a run cannot control it: its agent could approve its own requests"
            raise AgentMuxError("FORBIDDEN", message)
        return await execute_command(self._run, command)

    # -- events

    async def _send_events(self, reader: EventReader) -> None:
        while (batch := await reader.batch()) is not None:
            await self._send_state()  # before the events: a client looks up the request that an event announces
            for chunk in encode_chunks(batch[1]):
                await self._write(chunk)
        try:
            result = await self._run.result()
        except AgentMuxError as error:  # a bug of ours: the run has no result
            await self._write(_error(error))
        else:
            await self._send_state()
            await self._write(to_json_bytes(result.to_dict()) + b"\n")
        if self._tasks is not None:
            self._tasks.cancel_scope.cancel()

    async def _send_states(self) -> None:
        while True:
            await self._server.changed()
            await self._send_state()
            await anyio.sleep(_STATE_INTERVAL)

    async def _send_state(self) -> None:
        snapshot = snapshot_of(self._run)
        state = _distinguishing(snapshot)
        if state != self._last_state:
            self._last_state = state
            await self._write(to_json_bytes({"type": "run_state", "run": snapshot}) + b"\n")

    async def _write(self, data: bytes) -> None:
        """Write whole lines. Waits for a slow client; only this connection waits."""
        async with self._writing:
            rest = memoryview(data)
            while rest:
                try:
                    rest = rest[self._connection.send(rest) :]
                except BlockingIOError:
                    await anyio.wait_writable(self._connection)


def encode_chunks(events: Sequence[AgentEvent]) -> "list[bytes]":
    """Return the events as lines without accumulated text, joined into chunks."""
    chunks: list[bytes] = []
    lines: list[bytes] = []
    size = 0
    for event in events:
        line = encode_event(event, accumulated=False)
        lines.append(line)
        size += len(line) + 1
        if size >= CHUNK:
            chunks.append(b"\n".join(lines) + b"\n")
            lines, size = [], 0
    if lines:
        chunks.append(b"\n".join(lines) + b"\n")
    return chunks


def _distinguishing(snapshot: RunSnapshot) -> Sequence[Any]:
    pending = [one.id for one in snapshot.pending]
    return snapshot.state, snapshot.is_busy, pending, snapshot.model, snapshot.session_id, snapshot.journal


def _error(error: AgentMuxError, command: str | None = None, id_: str | int | None = None) -> bytes:
    return command_error(error, command, id_).encode() + b"\n"
