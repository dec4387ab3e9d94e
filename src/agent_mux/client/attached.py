"""`AgentMux.attach`: the handle of a run that works in another process of this machine, or that is over.

An active run is followed by its control socket. If that ends without a result, because the run was killed or this
client was too slow, the rest comes from the journal.
"""

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import msgspec
from anyio import to_thread

from agent_mux._util.sanitize import to_json_bytes
from agent_mux.client.local_runs.listing import LocalRuns, RunRecord, not_controllable
from agent_mux.client.remote.protocol import Snapshot
from agent_mux.client.remote.run import RemoteRun
from agent_mux.client.remote.stream import RESULT, EventStream, StreamItem
from agent_mux.control.client import connect_stream, parse_hello, response_error
from agent_mux.errors import AgentMuxError, FieldError, ValidationError
from agent_mux.events import AgentEvent, Rebuilder
from agent_mux.journal.file import is_being_written
from agent_mux.run.derivation import DerivedRun, codec_factory
from agent_mux.sdk.options import RunOptions, validate_options
from agent_mux.sdk.registry import AdapterRegistry

if TYPE_CHECKING:
    from agent_mux.client.remote.connection import ServiceConnection

CLIENT_OPTIONS = ("on_approval_request", "on_input_required", "collect_events", "event_buffer_size")
_MESSAGES = frozenset({"turn_start", "turn_end", "message_stop", "retry"})
_COMMANDS = {"input": "prompt", "respond": "answer"}
"""Commands with another name than at a service."""
_READ_SIZE = 1 << 16
_BATCH = 200  # events that are read from a journal at once
_END_OF_WRITER = 10.0  # seconds in which a process that closed its socket finishes its journal


async def attach(
    runs: LocalRuns,
    adapters: AdapterRegistry,
    run: str | None,
    fields: Mapping[str, Any],
    spawn: Callable[[Callable[[], Any]], None],
) -> "AttachedRun":
    """Find a run and return its handle; `follow` must run for the handle to work. Raises as `AgentMux.attach`."""
    allowed = ", ".join(CLIENT_OPTIONS)
    unknown = [FieldError(name, value, allowed) for name, value in fields.items() if name not in CLIENT_OPTIONS]
    if unknown:
        raise ValidationError(unknown)
    options = RunOptions(agent="-", prompt="-", approval_mode="prompt", **fields)
    validate_options(options)
    record = await to_thread.run_sync(runs.find, run)
    if record.problem is not None and record.socket is None and not record.is_over:
        raise not_controllable(record)
    if record.socket is None and record.journal is None:
        raise AgentMuxError("RUN_NOT_FOUND", f"run {record.run_id} is over and has no recording")
    return AttachedRun(runs, adapters, record, options, spawn)


class AttachedRun(RemoteRun):
    """The handle of a run in another process of this machine. It has the interface of `RunHandle`.

    Its properties show the latest state that the run has sent. Every command raises UNAVAILABLE when the process of the
    run does not answer.
    """

    _closed_reason = "the client was closed; the run continues"

    def __init__(
        self,
        runs: LocalRuns,
        adapters: AdapterRegistry,
        record: RunRecord,
        options: RunOptions,
        spawn: Callable[[Callable[[], Any]], None],
    ) -> None:
        """Create the handle of a recorded or active run. `AgentMux.attach` does this."""
        # The state of a run that is over follows from its journal, as the events do.
        state = "spawned" if record.is_over or record.state is None else record.state
        snapshot = Snapshot(
            record.run_id, record.agent, state, model=record.model, session_id=record.session_id, journal=record.journal
        )
        connection: ServiceConnection = None  # type: ignore[assignment]  # every use of it is overridden
        super().__init__(connection, snapshot, options, reconnect_for=0, spawn=spawn)
        self._runs = runs
        self._adapters = adapters
        self.record = record
        """The run as it was when the handle was created."""

    async def _request(self, command: str, body: Any, *, is_final: bool = False) -> bytes:  # noqa: ARG002  # see above
        message = {"type": _COMMANDS.get(command, command), **body}
        timeout = None if command == "abort" else 30.0
        ack = await to_thread.run_sync(
            lambda: self._runs.send(self.record, message, timeout=timeout), abandon_on_cancel=True
        )
        return to_json_bytes(ack)

    def _open_stream(self, *, snapshots: bool) -> EventStream:  # noqa: ARG002  # the socket always sends them
        return LocalStream(self.record, self._adapters)

    def _fetch_messages(self) -> Sequence[AgentEvent]:
        if self.record.journal is None:
            return ()
        derived = DerivedRun(Path(self.record.journal), codec_factory(self._adapters))
        return [event for _, batch in derived.batches() for event in batch if event.type in _MESSAGES]


class LocalStream:
    """All events of one run: from its control socket, and from its journal what the socket did not send."""

    def __init__(self, record: RunRecord, adapters: AdapterRegistry) -> None:
        self._record = record
        self._adapters = adapters
        self._rebuilder = Rebuilder()
        self._position = 0
        self._is_over = False

    async def follow(self, receive: Callable[[StreamItem], Awaitable[None]]) -> None:
        """Pass every item to `receive` until the run is over. Raises UNAVAILABLE if the rest cannot be read."""
        if self._record.socket is not None:
            await self._follow_socket(Path(self._record.socket), receive)
        if not self._is_over:
            await self._follow_journal(receive)

    async def _follow_socket(self, path: Path, receive: Callable[[StreamItem], Awaitable[None]]) -> None:
        connection = connect_stream(path, 0)
        if connection is None:
            return
        with connection:
            buffer = bytearray()
            is_first = True
            while not self._is_over:
                await anyio.wait_readable(connection)
                try:
                    data = connection.recv(_READ_SIZE)
                except BlockingIOError:
                    continue
                except OSError:
                    return  # the process was killed
                if not data:
                    return
                buffer += data
                *lines, rest = bytes(buffer).split(b"\n")
                buffer = bytearray(rest)
                if is_first and lines:
                    parse_hello(lines.pop(0))
                    is_first = False
                for item in self._decode(lines):
                    await receive(item)

    def _decode(self, lines: Sequence[bytes]) -> Iterator[StreamItem]:
        """Yield the items of lines, adjacent events as one item."""
        events: list[AgentEvent] = []
        for line in lines:
            kind = msgspec.json.decode(line, type=_Typed).type
            if kind not in {"run_state", "ack", "command_error", RESULT}:
                events.append(self._rebuilder.decode(line))  # type: ignore[arg-type]  # unknown types are passed on
                continue
            if events:
                self._position += len(events)
                yield events
                events = []
            if kind == "command_error":
                response_error(line)
            elif kind == RESULT:
                self._is_over = True
                yield msgspec.json.decode(line)
            else:
                yield msgspec.json.decode(line, type=_State).run
        if events:
            self._position += len(events)
            yield events

    async def _follow_journal(self, receive: Callable[[StreamItem], Awaitable[None]]) -> None:
        journal = self._record.journal
        if journal is None:
            raise AgentMuxError(
                "UNAVAILABLE", f"the process of run {self._record.run_id} has ended without a recording"
            )
        with anyio.move_on_after(_END_OF_WRITER):
            while await to_thread.run_sync(is_being_written, Path(journal)):  # noqa: ASYNC110  # nothing announces it
                await anyio.sleep(0.05)
        try:
            derived = await to_thread.run_sync(DerivedRun, Path(journal), codec_factory(self._adapters))
            events_of = (event for _, batch in derived.batches() for event in batch)
            rest = islice(events_of, self._position, None)
            while events := await to_thread.run_sync(lambda: list(islice(rest, _BATCH))):
                self._position += len(events)
                await receive(events)
            result = await to_thread.run_sync(lambda: derived.result().to_dict())
        except OSError as error:
            reason = error.strerror or error
            raise AgentMuxError("UNAVAILABLE", f"the recording {journal} cannot be read: {reason}") from error
        self._is_over = True
        await receive(result)


class _Typed(msgspec.Struct):
    type: str = ""


class _State(msgspec.Struct):
    run: Snapshot
