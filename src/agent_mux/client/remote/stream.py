"""The event stream of a remote run: server-sent events, received again from where a connection broke.

Messages are parsed as in the HTML standard, section 9.2.
"""

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import anyio
import msgspec

from agent_mux.client.remote import lazy_httpx as httpx
from agent_mux.client.remote.connection import ServiceConnection
from agent_mux.client.remote.protocol import Snapshot
from agent_mux.errors import AgentMuxError
from agent_mux.events import AgentEvent, Rebuilder, UnknownEvent

_END = b"\n\n"


class ServerSentEvent(NamedTuple):
    """One message of a stream of server-sent events."""

    number: int | None
    """The id of the message as a number, None when it has none or another one."""
    name: str
    """The event name; `message` when the message has none."""
    data: bytes
    id: str = ""
    """The id of the message, empty when it has none."""


class ServerSentEventParser:
    """Parses the bytes of one connection, split at arbitrary positions."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._searched = 0

    def feed(self, data: bytes) -> list[ServerSentEvent]:
        """Add bytes and return the messages that they complete, without comments."""
        self._buffer += data.replace(b"\r", b"")  # JSON contains no raw line breaks
        messages = []
        start = 0
        while (end := self._buffer.find(_END, max(start, self._searched))) >= 0:
            message = _parse_block(bytes(self._buffer[start:end]))
            if message is not None:
                messages.append(message)
            start = end + len(_END)
        del self._buffer[:start]
        self._searched = max(len(self._buffer) - 1, 0)
        return messages


def _parse_block(block: bytes) -> ServerSentEvent | None:
    id_, name, data = b"", "message", []
    for line in block.split(b"\n"):
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        match field:
            case b"data":
                data.append(value)
            case b"event":
                name = value.decode("utf-8", "replace")
            case b"id":
                id_ = value
    if not data:
        return None
    return ServerSentEvent(int(id_) if id_.isdigit() else None, name, b"\n".join(data), id_.decode("ascii", "replace"))


FIRST_DELAY, MAX_DELAY = 0.05, 5.0  # seconds before connecting again
MAX_FAILURES = 5
"""The number of attempts to read the same unreadable event."""
RESULT = "run_result"
TRANSIENT = frozenset({"UNAVAILABLE", "LIMIT_EXCEEDED", "RATE_LIMITED", "INTERNAL", "CONFIG_LOCK_ERROR", "TIMEOUT"})
StreamItem = Snapshot | Sequence[AgentEvent] | Mapping[str, Any]
"""The state of the run, its next events, or its result at the end."""


class EventStream(Protocol):
    """A source of all events of a run."""

    async def follow(self, receive: Callable[[StreamItem], Awaitable[None]]) -> None:
        """Pass every item to `receive` until the run is over, without gaps or duplicates."""


class StreamCorruptError(Exception):
    """The stream violates its format. It is read again from the last valid event."""


class RunStream:
    """One subscription to the events of a run, which reconnects until the run is over."""

    def __init__(
        self, connection: ServiceConnection, run_id: str, *, reconnect_for: float, snapshots: bool = False
    ) -> None:
        """Prepare the subscription.

        Args:
            connection: The service.
            run_id: The run.
            reconnect_for: Seconds without any bytes from the service after which the stream fails.
            snapshots: Whether to receive snapshots of the run's state, too.
        """
        self._connection = connection
        self._path = f"/v1/runs/{run_id}/events"
        self._params = {"accumulated": "false", **({"snapshots": "true"} if snapshots else {})}
        self._reconnect_for = reconnect_for
        self._rebuilder = Rebuilder()
        self._position = 0
        self._is_over = False
        self._received_at = 0.0
        self._delay = FIRST_DELAY
        self._failed_at, self._failures = -1, 0

    async def follow(self, receive: Callable[[StreamItem], Awaitable[None]]) -> None:
        """Pass every item to `receive` until the run is over, without gaps or duplicates.

        Raises the error that the service returns, unless it is transient, and UNAVAILABLE.
        """
        self._received_at = time.monotonic()
        while not self._is_over:
            try:
                await self._connect(receive)
                failure: Exception = StreamCorruptError("the service ended the stream")
            except httpx.RequestError as error:
                failure = error
            except StreamCorruptError as error:
                self._count_failure(error)
                failure = error
            except AgentMuxError as error:
                if error.code not in TRANSIENT:
                    raise
                failure = error
            if not self._is_over:
                await self._wait_after(failure)

    async def _connect(self, receive: Callable[[StreamItem], Awaitable[None]]) -> None:
        parser = ServerSentEventParser()
        last_id = str(self._position - 1) if self._position else ""
        async with self._connection.stream(self._path, self._params, last_id) as chunks:
            async for chunk in chunks:
                self._received_at, before = time.monotonic(), self._position
                for item in self._decode(parser.feed(chunk)):
                    await receive(item)
                if self._position > before:
                    self._delay = FIRST_DELAY

    def _count_failure(self, error: StreamCorruptError) -> None:
        """Raise UNAVAILABLE when the same event failed `MAX_FAILURES` times in sequence."""
        self._failures = self._failures + 1 if self._position == self._failed_at else 1
        self._failed_at = self._position
        if self._failures == MAX_FAILURES:
            raise AgentMuxError("UNAVAILABLE", f"the service at {self._connection.address.url} cannot be read: {error}")

    async def _wait_after(self, failure: Exception) -> None:
        if time.monotonic() + self._delay > self._received_at + self._reconnect_for:
            if isinstance(failure, AgentMuxError):
                raise failure
            raise self._connection.unreachable(failure) from failure
        await anyio.sleep(self._delay)
        self._delay = min(self._delay * 2, MAX_DELAY)

    def _decode(self, messages: Sequence[ServerSentEvent]) -> list[StreamItem]:
        """Return the items of the messages. Adjacent events are one item."""
        items: list[StreamItem] = []
        for message in messages:
            item = self._decode_message(message)
            if isinstance(item, list) and items and isinstance(items[-1], list):
                items[-1] += item
            elif item is not None:
                items.append(item)
        return items

    def _decode_message(self, message: ServerSentEvent) -> "Snapshot | list[AgentEvent] | Mapping[str, Any] | None":
        """Return the item of a message; None for a duplicate event and for the messages of a newer service."""
        try:
            if message.name == "run":
                return msgspec.json.decode(message.data, type=Snapshot)
            if message.name != "message" or message.number is None or message.number < self._position:
                return None
            if message.number > self._position:
                raise StreamCorruptError(f"event {self._position} is missing")
            event = self._rebuilder.decode(message.data)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise StreamCorruptError(f"a message of the service cannot be read: {error}") from error
        self._position += 1
        if isinstance(event, UnknownEvent) and event.native_type == RESULT:
            self._is_over = True
            return event.fields
        return [event]  # type: ignore[list-item]  # an event type of a newer service is passed on unchanged
