"""Clients that hang up, and requests that no server should accept: over raw sockets, as an attacker would."""

import logging
import socket
import struct
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from tests.service.serving import PATIENCE, Serving, serving

DEMO = {"agent": "replay", "prompt": "demo"}
ABSENT = "01K0000000000000000000000A"
RESET = struct.pack("ii", 1, 0)
UPGRADE = (
    "Upgrade: websocket\r\nConnection: Upgrade\r\n"
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with serving(tmp_path_factory.mktemp("served")) as server:
        yield server


@pytest.fixture
def errors(served: Serving, caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """What the server logs as an error until all requests are done; nothing is expected."""
    with caplog.at_level(logging.ERROR):
        yield
        for _ in range(2):  # new connections: those before them are accepted
            httpx.get(f"{served.url}/health", timeout=PATIENCE).raise_for_status()
        deadline = time.monotonic() + PATIENCE
        while served.server.server_state.tasks and time.monotonic() < deadline:
            time.sleep(0.01)
        assert not served.server.server_state.tasks
        assert [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR] == []


def hang_up(served: Serving, data: str, *, reads: int = 0, reset: bool = True) -> None:
    """Send data, receive at least as many bytes as `reads`, and leave: with a reset, or in order."""
    host, _, port = served.url.removeprefix("http://").rpartition(":")
    with socket.create_connection((host, int(port)), timeout=PATIENCE) as connection:
        connection.sendall(data.encode())
        if reads:
            assert connection.recv(reads)
        if reset:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)


def start(served: Serving) -> str:
    return str(served.http.post("/v1/runs", json=DEMO).json()["runId"])


@pytest.mark.usefixtures("errors")
@pytest.mark.parametrize("reset", [True, False])
@pytest.mark.parametrize("path", ["/v1/runs", f"/v1/runs/{ABSENT}/input", "/v1/webhooks", "/nowhere"])
def test_a_client_that_leaves_during_its_body_writes_no_traceback(served: Serving, path: str, reset: bool) -> None:
    served.http.get("/health")
    hang_up(served, f'POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 400\r\n\r\n{{"agent', reset=reset)


@pytest.mark.usefixtures("errors")
@pytest.mark.parametrize("query", ["", "?after=wrong", f"?after=0&types={ABSENT}"])
def test_a_client_that_leaves_during_the_handshake_writes_no_traceback(served: Serving, query: str) -> None:
    run = start(served)
    for _ in range(20):
        hang_up(served, f"GET /v1/runs/{run}/ws{query} HTTP/1.1\r\nHost: localhost\r\n{UPGRADE}\r\n")


@pytest.mark.usefixtures("errors")
@pytest.mark.parametrize("path", ["events", "events?snapshots=true", "ws"])
def test_a_client_that_leaves_a_stream_writes_no_traceback(served: Serving, path: str) -> None:
    run = start(served)
    upgrade = UPGRADE if path == "ws" else ""
    for reset in (True, False):
        hang_up(served, f"GET /v1/runs/{run}/{path} HTTP/1.1\r\nHost: localhost\r\n{upgrade}\r\n", reads=1, reset=reset)


@pytest.mark.usefixtures("errors")
@pytest.mark.parametrize("path", ["/openapi.json", "/v1/models", "/metrics", "/v1/runs"])
def test_a_client_that_leaves_before_its_answer_writes_no_traceback(served: Serving, path: str) -> None:
    for _ in range(5):
        hang_up(served, f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n")


SMUGGLED = b"0\r\n\r\nGET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"


@pytest.mark.parametrize("upgrade", ["", UPGRADE])
@pytest.mark.parametrize("coding", ["chunked", "identity", "gzip, chunked"])
def test_a_request_with_two_lengths_is_refused_and_its_connection_closed(
    served: Serving, coding: str, upgrade: str
) -> None:
    host, _, port = served.url.removeprefix("http://").rpartition(":")
    head = f"GET /v1/runs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\nTransfer-Encoding: {coding}\r\n{upgrade}"
    with socket.create_connection((host, int(port)), timeout=PATIENCE) as connection:
        connection.sendall(head.encode() + b"\r\n" + SMUGGLED)
        answer = b""
        while chunk := connection.recv(1 << 16):
            answer += chunk
    assert answer.startswith((b"HTTP/1.1 400 ", b"HTTP/1.1 501 "))
    assert answer.count(b"HTTP/1.1 ") == 1


def test_the_log_has_no_prompt_that_is_too_long_for_a_file_name(
    served: Serving, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for prompt in ("word" * 500, "/".join(["word" * 100] * 3), "~nobody-at-all/word", str(tmp_path / "none")):
        with caplog.at_level(logging.DEBUG, "agent_mux"):
            body = {"agent": "replay", "prompt": prompt}
            answer = served.http.post("/v1/runs", json=body)
        assert answer.status_code == 422, answer.text
        assert answer.json()["fields"][0]["path"] == "prompt"
        assert len(answer.json()["detail"]) < 1000
    assert "wordword" not in caplog.text
