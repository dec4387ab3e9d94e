"""Connections of WebSockets: uvicorn's, with what bounds them.

uvicorn writes a message when less than 64 KiB wait for the reader, and reads the next one when the last was taken; so a
connection that stalls holds 64 KiB and one message each way. What is added here are the three cases that it leaves
open: a flood of pings whose answers nobody reads, a reader that answers no ping and takes no bytes either, and a server
that stops while the last events of a run are on their way.
"""

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

LARGEST_MESSAGE = 1 << 20  # bytes of one that comes in; larger ones close the connection with 1009
PING_EVERY = 20.0  # seconds
PONG_WITHIN = 60.0  # seconds; a slow reader has to read what was sent before the ping
LAST_WORDS = 3.0  # seconds for what is still to be sent when the server stops, or the connection is given up


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
        self.loop.call_later(LAST_WORDS, self.transport.abort)

    def shutdown(self) -> None:
        """The server stops. The runs are over, so the connections end by themselves; those that do not are closed."""
        if self.handshake_complete and not self.close_sent:
            self.loop.call_later(LAST_WORDS, super().shutdown)
        else:
            super().shutdown()
