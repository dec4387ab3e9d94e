"""A receiver of webhooks on a loopback port: it checks every signature, and answers with a configured status."""

import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from agent_mux import webhooks

PATIENCE = 60.0  # seconds


@dataclass(frozen=True)
class Message:
    """One that came."""

    id: str
    headers: dict[str, str]
    body: bytes
    path: str

    def told(self, secret: str) -> Any:
        """Return the verified message."""
        return webhooks.verify(self.headers, self.body, secret)


@dataclass
class Receiver:
    """What came, and what is answered: a status, with headers; or something that takes a while."""

    url: str = ""
    messages: list[Message] = field(default_factory=list)
    statuses: list[int | Callable[[], int]] = field(default_factory=list)
    """For the next messages; 204 when there are no more."""
    headers: dict[str, str] = field(default_factory=dict)
    names: list[str | None] = field(default_factory=list)
    """That TLS connections asked for."""

    def wait_for(self, count: int) -> list[Message]:
        """So many messages."""
        self.wait(lambda: len(self.messages) >= count)
        return list(self.messages)

    @staticmethod
    def wait(is_so: Callable[[], object]) -> None:
        """Until it is so."""
        until = time.monotonic() + PATIENCE
        while not is_so():
            assert time.monotonic() < until, "it did not happen in time"
            time.sleep(0.01)


@contextmanager
def receiving(certificate: Path | None = None) -> Iterator[Receiver]:
    """Listen, until the block is left. `certificate`: with its key, for `localhost`; then it speaks HTTPS."""
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            receiver.messages.append(Message(headers["webhook-id"], headers, body, self.path))
            status = receiver.statuses.pop(0) if receiver.statuses else 204
            self.send_response(status() if callable(status) else status)
            for name, value in receiver.headers.items():
                self.send_header(name, value)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    class Server(ThreadingHTTPServer):
        def handle_error(self, *_: Any) -> None:
            pass  # whoever asked has gone

    server = Server(("127.0.0.1", 0), Handler)
    receiver.url = f"http://127.0.0.1:{server.server_port}/hook"
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        context.sni_callback = lambda _, name, __: receiver.names.append(name)
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        receiver.url = f"https://localhost:{server.server_port}/hook"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
