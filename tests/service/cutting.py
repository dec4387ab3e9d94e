"""A proxy that cuts connections: what comes from the server goes through until a number of bytes has, then no more."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

CHUNK = 1 << 16


class Cutting:
    """The proxy. `allowed` is asked for each connection: how many bytes of answers it lets through."""

    def __init__(self, port: int, allowed: Callable[[], int]) -> None:
        self._port = port
        self._allowed = allowed
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._open: list[socket.socket] = []
        self.connections = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def run(self) -> None:
        with suppress(OSError):  # it is closed
            while True:
                client, _ = self._listener.accept()
                self.connections += 1
                server = socket.create_connection(("127.0.0.1", self._port))
                self._open += [client, server]
                threading.Thread(target=_copy, args=(client, server, 1 << 60), daemon=True).start()
                threading.Thread(target=_copy, args=(server, client, self._allowed()), daemon=True).start()

    def close(self) -> None:
        _end(self._listener)
        self._listener.close()
        for one in self._open:
            _end(one)
            one.close()


def _copy(source: socket.socket, target: socket.socket, most: int) -> None:
    with suppress(OSError):
        while most > 0 and (data := source.recv(min(CHUNK, most))):
            most -= len(data)
            target.sendall(data)
    _end(source)
    _end(target)


def _end(one: socket.socket) -> None:
    with suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)


@contextmanager
def cutting(url: str, allowed: Callable[[], int]) -> Iterator[Cutting]:
    """Between us and a server."""
    proxy = Cutting(int(url.rpartition(":")[2]), allowed)
    thread = threading.Thread(target=proxy.run, name="proxy")
    thread.start()
    try:
        yield proxy
    finally:
        proxy.close()
        thread.join(10)
