"""What a user learns when a server that is no agent-mux service, or none at all, is at the URL."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import anyio
import pytest

from agent_mux import AgentMuxError
from agent_mux.client.remote.address import Address
from agent_mux.client.remote.connection import ServiceConnection, fetch

PAGE = b"<html><body>Welcome</body></html>"
DENIED = b'{"code": "UNAUTHENTICATED", "detail": "a valid token is required"}'


@contextmanager
def serving(status: int, body: bytes, content_type: str) -> Iterator[str]:
    """Provide the URL of a server that answers every request in the same way."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:  # named by the base class
            self.send_response(status)
            self.send_header("content-type", content_type)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Print nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)


@contextmanager
def listening(*, closes: bool) -> Iterator[str]:
    """Provide the URL of a server that accepts connections and never answers, or closes them at once."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        held: list[socket.socket] = []

        def accept() -> None:
            while True:
                try:
                    connection = server.accept()[0]
                except OSError:
                    return
                if closes:
                    connection.close()
                else:
                    held.append(connection)

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.getsockname()[1]}"
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join(10)
            for connection in held:
                connection.close()


HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 5000\r\n\r\n"


@contextmanager
def dripping(head: bytes) -> Iterator[str]:
    """Provide the URL of a server that sends `head` at once, and then 500 bytes in 10 seconds."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        is_over = threading.Event()

        def drip(connection: socket.socket) -> None:
            with connection, suppress(OSError):
                connection.recv(10_000)
                connection.sendall(head)
                for _ in range(500):
                    if not is_over.wait(0.02):
                        connection.sendall(b"1")

        threads: list[threading.Thread] = []

        def accept() -> None:
            with suppress(OSError):
                while True:
                    threads.append(threading.Thread(target=drip, args=(server.accept()[0],), daemon=True))
                    threads[-1].start()

        acceptor = threading.Thread(target=accept, daemon=True)
        acceptor.start()
        try:
            yield f"http://127.0.0.1:{server.getsockname()[1]}"
        finally:
            is_over.set()
            server.shutdown(socket.SHUT_RDWR)
            acceptor.join(10)
            for thread in threads:
                thread.join(10)


def error_from(url: str, token: str | None = None, timeout: float = 20.0) -> AgentMuxError:
    """Return the error of a blocking request; the one of an asynchronous request must be the same."""
    connection = ServiceConnection(Address.of(url, token), timeout)
    with pytest.raises(AgentMuxError) as blocking:
        fetch(connection, dict, "runs")

    async def request() -> None:
        with anyio.fail_after(60):
            await connection.open()
            try:
                await connection.request("GET", "/v1/runs", is_idempotent=True)
            finally:
                await connection.close()

    with pytest.raises(AgentMuxError) as awaited:
        anyio.run(request)
    assert awaited.value.code == blocking.value.code
    assert url in str(awaited.value)
    assert url in str(blocking.value)
    assert str(awaited.value).rpartition(";")[2] == str(blocking.value).rpartition(";")[2]
    return blocking.value


@pytest.mark.parametrize("status", [200, 302, 404, 502])
def test_a_page_is_reported_with_its_url_and_without_its_markup(status: int) -> None:
    with serving(status, PAGE, "text/html") as url:
        error = error_from(url)
    assert (error.code, str(error)) == (
        "UNAVAILABLE",
        f"{url}/v1/runs answered {status}, but not as an agent-mux service does; check the URL",
    )


@pytest.mark.parametrize(
    ("token", "problem"), [(None, "requires a token"), ("s3cret", "does not accept the token")], ids=["none", "wrong"]
)
def test_a_missing_and_a_wrong_token_are_told_apart(token: str | None, problem: str) -> None:
    with serving(401, DENIED, "application/problem+json") as url:
        error = error_from(url, token)
    step = "create one there with `amux tokens create`, and set AGENT_MUX_SERVER_TOKEN"
    assert (error.code, str(error)) == ("UNAUTHENTICATED", f"the service at {url} {problem}; {step}")


def test_a_server_that_never_answers_ends_the_request() -> None:
    with listening(closes=False) as url:
        error = error_from(url, timeout=0.2)
    step = "check that `amux serve` runs there"
    assert str(error) == f"the service at {url} accepted the connection, but did not answer in time; {step}"


@pytest.mark.parametrize("head", [b"", HEAD[:-2], HEAD], ids=["status", "headers", "body"])
def test_a_server_that_answers_byte_by_byte_is_given_up_at_the_limit(head: bytes) -> None:
    began = time.monotonic()
    with dripping(head) as url:
        error = error_from(url, timeout=0.1)
    step = "check that `amux serve` runs there"
    assert str(error) == f"the service at {url} accepted the connection, but did not answer in time; {step}"
    assert time.monotonic() - began < 9


def test_a_file_may_arrive_slowly() -> None:
    with dripping(HEAD.replace(b"5000", b"40")) as url:
        connection = ServiceConnection(Address.of(url, None), 0.3)
        assert connection.request_blocking("GET", "/v1/runs/1/files/a", accept="*/*") == b"1" * 40


def test_a_server_that_closes_the_connection_may_speak_tls() -> None:
    with listening(closes=True) as url:
        error = error_from(url, timeout=0.2)
    assert "closed the connection without a complete answer" in str(error)
    assert "whether the URL begins with https:// instead" in str(error)


def test_tls_to_a_server_without_tls_names_the_other_scheme() -> None:
    with serving(200, b"{}", "application/json") as url:
        error = error_from(url.replace("http:", "https:"))
    assert "check whether the URL begins with http:// instead of https://" in str(error)


def test_an_unknown_host_is_reported_as_such() -> None:
    error = error_from("http://no-such-host.invalid:8642", timeout=5.0)
    assert str(error).endswith("check the host name in the URL")
