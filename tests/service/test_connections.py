"""Connections that are slow, silent, too many or no HTTP: over raw sockets, as an attacker would."""

import asyncio
import json
import select
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import httpx
import pytest
from tests.service.serving import PATIENCE, Serving, serving

from agent_mux.service.settings import ConnectionLimits
from agent_mux.service.sockets import listening_sockets

SOON = 0.4  # seconds: the limits of this server
MOST = 12  # connections
DRIP = 0.05  # seconds between two bytes of somebody slow
DEMO = {"agent": "replay", "prompt": "demo"}
HEAD = b"GET /health HTTP/1.1\r\nhost: localhost\r\n"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    limits = ConnectionLimits(head_timeout=SOON, body_timeout=SOON, largest_body=10_000, connections=MOST)
    with serving(tmp_path_factory.mktemp("served"), limits=limits) as server:
        yield server


@contextmanager
def connected(served: Serving) -> Iterator[socket.socket]:
    host, _, port = served.url.removeprefix("http://").rpartition(":")
    with socket.create_connection((host, int(port)), timeout=PATIENCE) as connection:
        yield connection


def drip(connection: socket.socket, data: Iterator[int]) -> bytes:
    """Send a byte at a time until the server closes the connection; return its response."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        ready, _, _ = select.select([connection], [], [], DRIP)
        if ready:
            return read_all(connection)
        try:
            connection.sendall(bytes([next(data)]))
        except OSError:
            return b""
    raise AssertionError("it was let go on for ever")


def read_all(connection: socket.socket) -> bytes:
    text = b""
    try:
        while chunk := connection.recv(65536):
            text += chunk
    except ConnectionError:
        pass
    return text


def read_answer(connection: socket.socket) -> bytes:
    """One answer with a length."""
    text = b""
    while b"\r\n\r\n" not in text:
        text += connection.recv(65536)
    head, _, body = text.partition(b"\r\n\r\n")
    length = int(next(line for line in head.split(b"\r\n") if line.startswith(b"content-length")).split(b":")[1])
    while len(body) < length:
        body += connection.recv(65536)
    return head + b"\r\n\r\n" + body


def endless(start: bytes) -> Iterator[int]:
    yield from start
    while True:
        yield ord("a")


def test_a_slow_client_is_disconnected(served: Serving) -> None:
    with connected(served) as connection:
        text = drip(connection, endless(HEAD + b"x: "))
    assert text.startswith(b"HTTP/1.1 408 ")
    assert b"content-security-policy: default-src 'none'" in text
    assert served.http.get("/health").status_code == 200


def test_a_silent_client_is_disconnected(served: Serving) -> None:
    with connected(served) as connection:
        assert read_all(connection).startswith(b"HTTP/1.1 408 ")


def test_a_slow_client_is_disconnected_after_a_complete_request(served: Serving) -> None:
    with connected(served) as connection:
        connection.sendall(HEAD + b"\r\n")
        assert read_answer(connection).startswith(b"HTTP/1.1 200 ")
        drip(connection, endless(HEAD + b"x: "))


def test_a_connection_can_be_used_again(served: Serving) -> None:
    with connected(served) as connection:
        for _ in range(5):
            connection.sendall(HEAD + b"\r\n")
            assert read_answer(connection).startswith(b"HTTP/1.1 200 ")


async def delay_option() -> int:
    """Return TCP_NODELAY of a connection that the event loop accepts on a listening socket."""
    (listening,) = listening_sockets("127.0.0.1", 0)
    accepted: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    def connected(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        accepted.set_result(writer.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
        writer.close()

    async with asyncio.timeout(PATIENCE), await asyncio.start_server(connected, sock=listening):
        _, writer = await asyncio.open_connection(*listening.getsockname())
        option = await accepted
        writer.close()
        await writer.wait_closed()
    return option


def test_small_answers_do_not_wait_for_acknowledgements() -> None:
    assert asyncio.run(delay_option()) != 0


def test_requests_in_a_row_are_answered_in_order(served: Serving) -> None:
    with connected(served) as connection:
        last = HEAD + b"connection: close\r\n\r\n"
        connection.sendall((HEAD + b"\r\n") * 3 + last)
        assert read_all(connection).count(b'{"status":"ok"') == 4


def test_a_slow_body_is_not_waited_for(served: Serving) -> None:
    with connected(served) as connection:
        connection.sendall(b"POST /v1/runs HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9000\r\n\r\n")
        text = drip(connection, endless(b"{"))
    assert text.startswith(b"HTTP/1.1 408 ")


@pytest.mark.parametrize("more", [b"content-length: 99999999\r\n", b"transfer-encoding: chunked\r\n"])
def test_a_body_behind_a_refusal_is_not_read_for_ever(served: Serving, more: bytes) -> None:
    with connected(served) as connection:
        connection.sendall(b"POST /v1/runs HTTP/1.1\r\nhost: evil.example\r\n" + more + b"\r\n")
        assert read_answer(connection).startswith(b"HTTP/1.1 421 ")
        drip(connection, endless(b"5\r\nhello\r\n" if b"chunked" in more else b""))


def test_a_declared_length_over_the_limit_is_refused_before_the_body(served: Serving) -> None:
    with connected(served) as connection:
        connection.sendall(b"POST /v1/runs HTTP/1.1\r\nhost: localhost\r\ncontent-length: 99999999\r\n\r\n")
        assert read_answer(connection).startswith(b"HTTP/1.1 413 ")


def test_an_endless_chunked_body_is_cut_off(served: Serving) -> None:
    with connected(served) as connection:
        connection.sendall(b"POST /v1/runs HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n")
        for _ in range(3):
            connection.sendall(b"1000\r\n" + b"a" * 0x1000 + b"\r\n")
        assert read_answer(connection).startswith(b"HTTP/1.1 413 ")


def test_a_head_without_an_end_is_cut_off(served: Serving) -> None:
    with connected(served) as connection:
        connection.sendall(HEAD)
        for _ in range(1000):
            connection.sendall(b"x: " + b"y" * 1000 + b"\r\n")
        assert read_all(connection).startswith(b"HTTP/1.1 431 ")


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"nonsense\r\n\r\n", 400),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400),
        (HEAD + b"host: localhost\r\n\r\n", 400),
        (b"GET /health HTTP/1.1\r\n\r\n", 400),
        (HEAD + b"x: a\rb\r\n\r\n", 400),
        (HEAD + b"content-length: 5, 6\r\n\r\n", 400),
        (HEAD + b"transfer-encoding: gzip\r\n\r\n", 501),
        (HEAD + b"x: " + b"y" * 100_000, 431),
        (b"GET http://evil.example/health HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n", 404),
        (b"GET /health HTTP/1.0\r\n\r\n", 421),
    ],
)
def test_an_invalid_request_is_a_problem(served: Serving, data: bytes, status: int) -> None:
    with connected(served) as connection:
        connection.sendall(data)
        head, _, body = read_all(connection).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 %d " % status)
    assert json.loads(body)["status"] == status
    assert b"x-content-type-options: nosniff" in head


def test_an_idle_connection_is_closed_for_a_new_one(served: Serving) -> None:
    with ExitStack() as stack:
        idle = [stack.enter_context(connected(served)) for _ in range(3 * MOST)]
        with httpx.Client(base_url=served.url, timeout=PATIENCE) as client:
            assert client.get("/health").status_code == 200
        assert all(b" 200 " not in read_all(connection) for connection in idle)


@pytest.mark.slow
def test_readers_keep_their_connections_and_further_ones_are_refused(served: Serving) -> None:
    run_id = served.http.post("/v1/runs", json=DEMO).json()["runId"]
    path = f"/v1/runs/{run_id}/events"
    request = f"GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n".encode()
    with ExitStack() as stack:
        readers = []
        for _ in range(MOST):
            reader = stack.enter_context(connected(served))
            reader.sendall(request)
            assert reader.recv(15) == b"HTTP/1.1 200 OK"
            readers.append(reader)
        with connected(served) as further:
            assert read_all(further).startswith(b"HTTP/1.1 503 ")
        started = time.monotonic()
        for reader in readers:
            text = b""
            while b'"run_result"' not in text:
                chunk = reader.recv(1 << 20)
                assert chunk, "a reader was cut off"
                text = text[-100:] + chunk
        assert time.monotonic() - started > SOON, "they were watching for longer than a head may take"
    assert served.http.get("/health").status_code == 200
