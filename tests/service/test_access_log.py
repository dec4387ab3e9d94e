"""One line per request, with nothing secret in it."""

import json
import logging
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.service.commanding import PATIENCE, serve
from tests.service.durable.processes import until
from tests.service.keys import bearing, make_token
from tests.service.serving import Serving, serving
from websockets.sync.client import connect

from agent_mux.service.access_log import ACCESS_LOGGER, access_log

DEMO = {"agent": "replay", "prompt": "demo", "env": {"AMUX_REPLAY_SPEED": "0"}}
SECRET = "sk-ant-api03-" + "a1B2" * 12


class Entries(logging.Handler):
    """The entries of the access log."""

    def __init__(self) -> None:
        super().__init__()
        self.all: list[dict[str, Any]] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.all.append(record.entry)  # type: ignore[attr-defined]

    def of(self, path: str) -> list[dict[str, Any]]:
        return [entry for entry in self.all if entry["path"] == path]


@pytest.fixture
def entries() -> Iterator[Entries]:
    handler = Entries()
    logger = logging.getLogger(ACCESS_LOGGER)
    logger.addHandler(handler)
    with access_log(enabled=True):
        yield handler
    logger.removeHandler(handler)


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Serving]:
    with serving(tmp_path) as served:
        yield served


def entry(entries: Entries, path: str) -> dict[str, Any]:
    """Return the only entry of a path; it is written after the client has the response."""
    (found,) = until(lambda: entries.of(path))
    return dict(found)


def test_a_request_is_one_entry(served: Serving, entries: Entries) -> None:
    answer = served.http.get("/health?key=" + SECRET, headers={"x-request-id": "chosen-1"})
    found = entry(entries, "/health")
    assert answer.headers["x-request-id"] == found["request_id"] == "chosen-1"
    assert (found["method"], found["status"], found["bytes"]) == ("GET", 200, len(answer.content))
    assert (found["caller"], found["client"]) == ("-", "127.0.0.1")
    assert isinstance(found["ms"], int)
    assert SECRET not in json.dumps(found)


def test_a_request_id_that_is_not_plain_is_replaced(served: Serving, entries: Entries) -> None:
    for chosen in (b"a b", b"x" * 65, "é".encode()):
        answer = served.http.get("/health", headers={b"x-request-id": chosen})
        assert len(answer.headers["x-request-id"]) == 26
    until(lambda: len(entries.of("/health")) == 3)


def test_the_caller_is_the_name_of_the_token(tmp_path: Path, entries: Entries) -> None:
    token = make_token(tmp_path, "ci", "run")
    with serving(tmp_path) as served:
        served.http.get("/v1/runs", headers=bearing(token))
        served.http.get("/v1/profiles", headers=bearing(token[:-1] + "!"))
        assert entry(entries, "/v1/runs")["caller"] == "ci"
        refused = entry(entries, "/v1/profiles")
    assert (refused["status"], refused["caller"]) == (401, "-")
    assert token.rpartition("_")[2] not in json.dumps(entries.all)


def test_secrets_in_a_path_are_hidden(served: Serving, entries: Entries) -> None:
    served.http.get(f"/v1/profiles/{SECRET}")
    until(lambda: entries.all)
    assert SECRET not in json.dumps(entries.all)


def test_a_line_break_in_a_path_stays_encoded(served: Serving, entries: Entries) -> None:
    served.http.get("/v1/runs/x%0Ay")
    assert entry(entries, "/v1/runs/x%0Ay")["status"] == 404


def test_a_head_response_has_no_bytes(served: Serving, entries: Entries) -> None:
    served.http.head("/health")
    assert entry(entries, "/health")["bytes"] == 0


@pytest.mark.slow
def test_a_stream_is_logged_at_its_end(served: Serving, entries: Entries) -> None:
    slow = {**DEMO, "env": {"AMUX_REPLAY_SPEED": "1"}}
    run_id = served.http.post("/v1/runs", json=slow).json()["runId"]
    path = f"/v1/runs/{run_id}/events"
    with served.http.stream("GET", path) as stream:
        chunks = stream.iter_raw()
        size = len(next(chunks))
        assert entries.of(path) == []
        served.http.post(f"/v1/runs/{run_id}/abort")
        size += sum(map(len, chunks))
    found = entry(entries, path)
    assert (found["status"], found["bytes"], "cut" in found) == (200, size, False)


@pytest.mark.slow
def test_a_stream_that_its_reader_left_is_marked(served: Serving, entries: Entries) -> None:
    run_id = served.http.post("/v1/runs", json={**DEMO, "env": {"AMUX_REPLAY_SPEED": "1"}}).json()["runId"]
    path = f"/v1/runs/{run_id}/events"
    with served.http.stream("GET", path) as stream:
        next(stream.iter_raw())
    assert entry(entries, path)["cut"] is True


def test_a_websocket_is_logged_at_its_end(served: Serving, entries: Entries) -> None:
    run_id = served.http.post("/v1/runs", json=DEMO).json()["runId"]
    path = f"/v1/runs/{run_id}/ws"
    with connect(served.url.replace("http", "ws") + path, open_timeout=PATIENCE) as websocket:
        size = sum(len(str(message).encode()) for message in websocket)
    found = entry(entries, path)
    assert (found["method"], found["status"], found["bytes"]) == ("GET", 101, size)


def test_a_request_that_is_not_http_is_logged(served: Serving, entries: Entries) -> None:
    host, port = served.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=PATIENCE) as client:
        client.sendall(b"no request\r\n\r\n")
        assert b" 400 " in client.recv(100)
    assert entry(entries, "-")["status"] == 400


@pytest.mark.slow
def test_the_access_log_of_amux_serve_is_json_on_request(tmp_path: Path) -> None:
    with serve(tmp_path, "--access-log", AMUX_LOG="json") as served:
        httpx.get(f"{served.url}/health?q=private", timeout=PATIENCE)
        code, log = served.stop()
    (line,) = (json.loads(line) for line in log.splitlines())
    assert (code, line["event"], line["path"], line["status"]) == (0, "request", "/health", 200)
    assert "private" not in log


@pytest.mark.slow
@pytest.mark.parametrize(
    ("flags", "count"), [((), 0), (("--log-level", "info"), 1), (("--log-level", "info", "--no-access-log"), 0)]
)
def test_the_access_log_follows_the_log_level_by_default(tmp_path: Path, flags: tuple[str, ...], count: int) -> None:
    with serve(tmp_path, *flags) as served:
        httpx.get(f"{served.url}/health", timeout=PATIENCE)
        _, log = served.stop()
    assert log.count(" path=/health status=200 ") == count
