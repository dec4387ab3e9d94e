"""Connections that want something: those that do not say what within a while are closed, and there are not too many.

uvicorn has a time limit for a connection that is silent between two requests, and none for one that sends its request a
byte at a time, or that never sends one. Here, the time counts from the connection, or from the first byte behind the
request before, to the end of the head of the request. Bodies have their own limit: see `security.bodies`.

Readers of events stay for hours and are not counted against anybody: only when there are as many connections as there
may be, one that waits for a request has to go for a new one, the oldest first.


Connections of WebSockets: uvicorn's, with what bounds them.

uvicorn writes a message when less than 64 KiB wait for the reader, and reads the next one when the last was taken; so a
connection that stalls holds 64 KiB and one message each way. What is added here are the three cases that it leaves
open: a flood of pings whose answers nobody reads, a reader that answers no ping and takes no bytes either, and a server
that stops while the last events of a run are on their way.


The sockets that a server listens on. Bound before anything else is opened: a port in use is told at once.
"""

import asyncio
import logging
import resource
import sys
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from uvicorn.server import ServerState

from agent_mux._util.logs import LOGGER
from agent_mux.service import problems
from agent_mux.service.security.http_rules import HEADERS

LINGER = 2.0  # seconds for the other side to read why it is not served
MAX_CONNECTIONS = 4096
RESERVED_FILES = 256
"""Open files that are left for the agents' pipes, journals and the database."""


def default_max_connections() -> int:
    """How many there may be: bounded by the files that this process may have open."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MAX_CONNECTIONS if files == resource.RLIM_INFINITY else max(min(MAX_CONNECTIONS, files - RESERVED_FILES), 64)


class ConnectionRegistry(ServerState):
    """Those that a server has."""

    def __init__(self, max_connections: int, head_timeout: float) -> None:
        super().__init__()
        self.max_connections = max_connections
        self.head_timeout = head_timeout
        self.waiting: dict[HttpConnection, None] = {}
        """For a request, those that wait longest first."""


class HttpConnection(H11Protocol):
    """One connection."""

    server_state: ConnectionRegistry
    _timer: asyncio.TimerHandle | None = None
    _is_closing = False
    """It was told why, and whatever it still sends is dropped."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """It is there: wait for its request, if there is room for it."""
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
            logging.getLogger(LOGGER).warning(
                "a connection was refused: there are %d", self.server_state.max_connections
            )
            self.close_idle(503)

    def data_received(self, data: bytes) -> None:
        """Some bytes of a request, or of its body."""
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
        """A request is being answered, or the connection is a WebSocket now."""
        is_websocket = self not in self.connections
        return is_websocket or (self.cycle is not None and not self.cycle.response_complete)

    def on_response_complete(self) -> None:
        """It may ask again."""
        super().on_response_complete()
        if self._is_busy:  # it had asked already
            self._stop_timer()
        elif not self.transport.is_closing():
            self.server_state.waiting[self] = None  # uvicorn's own timer runs, until there is a byte

    def connection_lost(self, exc: Exception | None) -> None:
        """It is gone."""
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
        """Close it. `status`: is said before, where nothing was said yet."""
        self._stop_timer()
        if status is not None and self.conn.our_state in {h11.IDLE, h11.SEND_RESPONSE}:
            self._send_problem(status)
        self.transport.close()

    def send_400_response(self, msg: str) -> None:
        """What is no HTTP, or has too large a head: the parser knows which."""
        error = sys.exception()
        status = error.error_status_hint if isinstance(error, h11.ProtocolError) else 400
        self._stop_timer()
        if self.conn.our_state not in {h11.IDLE, h11.SEND_RESPONSE}:
            self.transport.close()
            return
        self._send_problem(status, msg)
        self._close_after_response()

    def _close_after_response(self) -> None:
        """Close it when the other side does, or soon: at once, what it still sends would cut off what it is told."""
        self._is_closing = True
        self.transport.write_eof()
        self._timer = self.loop.call_later(LINGER, self.transport.abort)

    def _send_problem(self, status: int, detail: str = "") -> None:
        said = problems.status_response(status, detail)
        headers: Any = [*said.raw_headers, *((name.encode(), value.encode()) for name, value in HEADERS.items())]
        head = h11.Response(status_code=status, headers=[*headers, (b"connection", b"close")])
        for event in (head, h11.Data(data=bytes(said.body)), h11.EndOfMessage()):
            self.transport.write(self.conn.send(event) or b"")


LARGEST_MESSAGE = 1 << 20  # bytes of one that comes in; larger ones close the connection with 1009
PING_INTERVAL = 20.0  # seconds
PONG_TIMEOUT = 60.0  # seconds; a slow reader has to read what was sent before the ping
CLOSE_DELAY = 3.0  # seconds for what is still to be sent when the server stops, or the connection is given up


class BoundedWebSocket(WebSocketsSansIOProtocol):
    """One connection."""

    def handle_ping(self) -> None:
        """Answer, unless the answers before are not read. Source: RFC 6455, section 5.5.3: the latest one is enough."""
        if self.writable.is_set():
            super().handle_ping()
        else:
            self.conn.data_to_send()

    def keepalive_timeout(self) -> None:
        """Nobody is there any more: what was not sent by now never will be."""
        super().keepalive_timeout()
        self.loop.call_later(CLOSE_DELAY, self.transport.abort)

    def shutdown(self) -> None:
        """The server stops. The runs are over, so the connections end by themselves; those that do not are closed."""
        if self.handshake_complete and not self.close_sent:
            self.loop.call_later(CLOSE_DELAY, super().shutdown)
        else:
            super().shutdown()
