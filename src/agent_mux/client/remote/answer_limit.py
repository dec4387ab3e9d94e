"""A limit for the whole answer to a blocking request: httpx limits each read, and a server may send byte by byte."""

import math
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any


class AnswerLimit:
    """Shuts down the connection of a request when its time is over, which ends a read that waits in another thread."""

    def __init__(self) -> None:
        self.is_reached = False
        """Whether the time is over."""
        self._socket: socket.socket | None = None

    def trace(self, event: str, info: Mapping[str, Any]) -> None:
        """Keep the socket of the latest connection: httpx calls this, its extension `trace`, for each step."""
        if event.endswith(("connect_tcp.complete", "start_tls.complete")):
            self._socket = info["return_value"].get_extra_info("socket")
            if self.is_reached:
                self.reach()

    def reach(self) -> None:
        """End the request."""
        self.is_reached = True
        if self._socket is not None:
            with suppress(OSError):  # it is closed already
                self._socket.shutdown(socket.SHUT_RDWR)


@contextmanager
def closed_after(seconds: float) -> Iterator[AnswerLimit]:
    """Provide the limit of a request that ends after `seconds`; infinity: no limit."""
    limit = AnswerLimit()
    if seconds == math.inf:
        yield limit
        return
    timer = threading.Timer(seconds, limit.reach)
    timer.daemon = True
    timer.start()
    try:
        yield limit
    finally:
        timer.cancel()
