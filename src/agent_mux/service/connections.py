"""Client connections: uvicorn's HTTP and WebSocket protocols with limits on time, number and unread data.

uvicorn has a time limit for a connection that is idle between two requests, but none for one that sends its request a
byte at a time or never sends one. `HttpConnection` limits the time from the connection, or from the first byte after
the previous request, to the end of the request's head. Bodies have their own limit: see `security.http_rules`.

Readers of events stay connected for hours and are not limited. Only when the maximum number of connections is reached,
the connection that has waited longest for a request is closed in favour of the new one.

uvicorn writes a WebSocket message only while less than 64 KiB wait for the reader, and reads the next message once the
previous one was received, so a stalled WebSocket holds 64 KiB and one message in each direction. `BoundedWebSocket`
sends a large message in fragments, so that it holds one piece of it, and adds three limits: a flood of pings whose
pongs the client does not read, a reader that neither answers pings nor reads, and a server that stops while the last
events of a run are in transit.
"""

import asyncio
import logging
import resource
import sys
from collections.abc import Callable
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.utils import ClientDisconnected
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from uvicorn.server import ServerState
from websockets.exceptions import InvalidState

from agent_mux._util.logs import LOGGER
from agent_mux.service import problems
from agent_mux.service.access_log import NONE, write_access_entry
from agent_mux.service.pieces import PARTS, pieces_of
from agent_mux.service.security.http_rules import HEADERS, has_two_lengths

LINGER = 2.0  # seconds for a refused client to read the response
MAX_CONNECTIONS = 4096
RESERVED_FILES = 256
"""Open files reserved for the agents' pipes, journals and the database."""
LARGEST_MESSAGE = 1 << 20  # bytes of an incoming message; a larger one closes the connection with code 1009
PING_INTERVAL = 20.0  # seconds
PONG_TIMEOUT = 60.0  # seconds; a slow reader first reads what was sent before the ping
CLOSE_DELAY = 3.0  # seconds to send pending data when the server stops or the client is unresponsive


def default_max_connections() -> int:
    """Return the maximum number of connections, bounded by the limit on open files of this process."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MAX_CONNECTIONS if files == resource.RLIM_INFINITY else max(min(MAX_CONNECTIONS, files - RESERVED_FILES), 64)


class ConnectionRegistry(ServerState):
    """The connections of one server."""

    def __init__(self, max_connections: int, head_timeout: float) -> None:
        super().__init__()
        self.max_connections = max_connections
        self.head_timeout = head_timeout
        self.waiting: dict[HttpConnection, None] = {}
        """Connections that wait for a request, the longest-waiting first."""


class HttpConnection(H11Protocol):
    """One HTTP connection with a deadline for the head of each request."""

    server_state: ConnectionRegistry
    _timer: asyncio.TimerHandle | None = None
    _is_closing = False
    """Whether the final response was sent; further input is dropped."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the deadline for the first request, or refuse the connection when there are too many."""
        super().connection_made(transport)
        if len(self.connections) > self.server_state.max_connections:
            self._enforce_limit()
        if not transport.is_closing():
            self._start_timer()

    def _enforce_limit(self) -> None:
        oldest = next(iter(self.server_state.waiting), None)
        if oldest is not None:
            oldest.close_idle(None)
        else:
            logging.getLogger(LOGGER).warning("refused a connection: %d are open", self.server_state.max_connections)
            self.close_idle(503)

    def data_received(self, data: bytes) -> None:
        """Receive bytes of a request or of its body."""
        if self._is_closing:
            return
        super().data_received(data)
        self._update_timer()

    def _update_timer(self) -> None:
        if self._is_busy:
            self._stop_timer()
        elif self._timer is None and not self.transport.is_closing():
            self._start_timer()

    @property
    def _is_busy(self) -> bool:
        """Whether a request is being answered, or the connection was upgraded to a WebSocket."""
        is_websocket = self not in self.connections
        return is_websocket or (self.cycle is not None and not self.cycle.response_complete)

    def _should_upgrade(self) -> bool:
        """Leave a request with two lengths to the guard, which refuses it and closes the connection."""
        return bool(super()._should_upgrade()) and not has_two_lengths(self.headers)

    def on_response_complete(self) -> None:
        """Wait for the next request on this connection."""
        super().on_response_complete()
        if self._is_busy:  # the next request was pipelined
            self._stop_timer()
        elif not self.transport.is_closing():
            self.server_state.waiting[self] = None  # until the next byte, uvicorn's own timer runs

    def connection_lost(self, exc: Exception | None) -> None:
        """Remove the connection from the registry."""
        self._stop_timer()
        super().connection_lost(exc)

    def _start_timer(self) -> None:
        self.server_state.waiting.setdefault(self)
        self._timer = self.loop.call_later(self.server_state.head_timeout, self.close_idle, 408)

    def _stop_timer(self) -> None:
        self.server_state.waiting.pop(self, None)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def close_idle(self, status: int | None) -> None:
        """Close the connection.

        `status`: sent before closing, unless a response was already started; None: send nothing.
        """
        self._stop_timer()
        if status is not None and self.conn.our_state in {h11.IDLE, h11.SEND_RESPONSE}:
            self._send_problem(status)
        self.transport.close()

    def send_400_response(self, msg: str) -> None:
        """Answer input that is not HTTP or has too large a head, with the status that the parser suggests."""
        error = sys.exception()
        status = error.error_status_hint if isinstance(error, h11.ProtocolError) else 400
        self._stop_timer()
        if self.conn.our_state not in {h11.IDLE, h11.SEND_RESPONSE}:
            self.transport.close()
            return
        self._send_problem(status, problems.with_next_step(status, msg))
        self._close_after_response()

    def _close_after_response(self) -> None:
        """Close when the client does, or after `LINGER`.

        Closing at once would discard the response while the client still sends.
        """
        self._is_closing = True
        self.transport.write_eof()
        self._timer = self.loop.call_later(LINGER, self.transport.abort)

    def _send_problem(self, status: int, detail: str = "") -> None:
        write_access_entry({"status": status, "client": self.client[0] if self.client else NONE})
        response = problems.status_response(status, detail)
        headers: Any = [*response.raw_headers, *((name.encode(), value.encode()) for name, value in HEADERS.items())]
        head = h11.Response(status_code=status, headers=[*headers, (b"connection", b"close")])
        for event in (head, h11.Data(data=bytes(response.body)), h11.EndOfMessage()):
            self.transport.write(self.conn.send(event) or b"")


class BoundedWebSocket(WebSocketsSansIOProtocol):
    """One WebSocket connection that cannot accumulate unread data."""

    async def send(self, message: Any) -> None:
        """Send a message; one that has `PARTS` in fragments, each when the client has read those before it."""
        if PARTS not in message:
            await super().send(message)
            return
        try:
            send: Callable[[bytes, bool], None] = self.conn.send_text
            for piece in pieces_of(*message[PARTS]):
                await self._send_fragment(send, piece, is_last=False)
                send = self.conn.send_continuation
            await self._send_fragment(send, b"", is_last=True)
        except InvalidState:
            raise ClientDisconnected from None

    async def _send_fragment(self, send: Callable[[bytes, bool], None], piece: bytes, *, is_last: bool) -> None:
        await self.writable.wait()
        if self.disconnected or self.close_sent:
            raise ClientDisconnected
        send(piece, is_last)
        self.transport.write(b"".join(self.conn.data_to_send()))

    def handle_ping(self) -> None:
        """Send a pong, unless earlier pongs are unread.

        Answering the latest ping is enough (RFC 6455, section 5.5.3).
        """
        if self.writable.is_set():
            super().handle_ping()
        else:
            self.conn.data_to_send()

    def keepalive_timeout(self) -> None:
        """Close a connection whose client answers no ping, and abort it if the close does not get through."""
        super().keepalive_timeout()
        self.loop.call_later(CLOSE_DELAY, self.transport.abort)

    def shutdown(self) -> None:
        """Let the connection end together with its run when the server stops; close it after `CLOSE_DELAY`."""
        if self.handshake_complete and not self.close_sent:
            self.loop.call_later(CLOSE_DELAY, super().shutdown)
        else:
            super().shutdown()
