"""Large events reach every reader whole, over every transport, and cost a stalled reader little."""

import json
import os
import resource
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from tests.process.scripted import scripted_adapter
from tests.service.serving import Serving, serving
from tests.service.test_websocket import everything, opened

from agent_mux.sdk.registry import AdapterRegistry

SIZE = 3 << 20
BODY = f"""
read()
emit(text="begin ")
emit(text="\\u20ac" * ({SIZE} // 3))
emit(done=True)
drain()
"""
RUN = {"agent": "scripted", "prompt": "hi", "approvalMode": "yolo"}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    adapters = AdapterRegistry()
    adapters.register(scripted_adapter(BODY))
    with serving(tmp_path_factory.mktemp("served"), adapters) as server:
        yield server


def ended(served: Serving, **fields: object) -> str:
    answer = served.http.post("/v1/runs", json={**RUN, **fields})
    assert answer.status_code == 201, answer.text
    run_id = str(answer.json()["runId"])
    served.http.get(f"/v1/runs/{run_id}/events", headers={"accept": "application/jsonl"})
    return run_id


@pytest.mark.parametrize("limit", [0, 1 << 16])
def test_every_transport_sends_the_same_events(served: Serving, limit: int) -> None:
    run_id = ended(served, maxTextBytes=limit)
    lines = served.http.get(f"/v1/runs/{run_id}/events", headers={"accept": "application/jsonl"}).content.splitlines()
    blocks = served.http.get(f"/v1/runs/{run_id}/events").content.split(b"\n\n")
    sse = [block.partition(b"\ndata: ")[2] for block in blocks if block.startswith(b"id: ")]
    assert sse == lines
    with opened(served, run_id) as websocket:
        messages = everything(websocket)
    assert messages == [json.loads(line) for line in lines]
    with opened(served, run_id, "?numbered=true") as websocket:
        assert [message["event"] for message in everything(websocket)] == messages
    stop = next(message for message in messages if message["type"] == "message_stop")
    assert len(stop["text"].encode()) + stop.get("truncatedBytes", 0) == SIZE + 6
    assert ("truncatedBytes" in stop) == bool(limit)


def test_the_whole_text_is_read_by_range(served: Serving) -> None:
    run_id = ended(served, maxTextBytes=1 << 16)
    run = served.http.get(f"/v1/runs/{run_id}").json()
    assert run["result"]["truncatedBytes"] == SIZE + 6 - len(run["result"]["text"].encode())
    part = served.http.get(f"/v1/runs/{run_id}/text", params={"offset": 3, "limit": 9})
    assert part.status_code == 200
    assert part.headers["content-type"] == "text/plain; charset=utf-8"
    assert part.headers["x-text-size"] == str(SIZE + 6)
    assert part.content.decode() == "in \u20ac\u20ac"
    assert len(served.http.get(f"/v1/runs/{run_id}/text").content) == SIZE + 6
    assert served.http.get(f"/v1/runs/{run_id}/text", params={"offset": -1}).status_code == 422
    assert served.http.get(f"/v1/runs/{'0' * 26}/text").status_code == 404


def test_a_listing_loads_neither_requests_nor_results(served: Serving) -> None:
    ended(served, maxTextBytes=0)
    runs = served.http.get("/v1/runs").json()["runs"]
    assert runs
    assert not any("result" in run or "request" in run for run in runs)


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")
@pytest.mark.parametrize("transport", ["events", "ws"])
def test_stalled_readers_share_a_large_event(served: Serving, transport: str) -> None:
    run_id = ended(served, maxTextBytes=0)
    host, port = served.url.removeprefix("http://").split(":")
    upgrade = (
        "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
    )
    before = _resident()
    readers = []
    for _ in range(40):
        one = socket.create_connection((host, int(port)))
        one.sendall(
            f"GET /v1/runs/{run_id}/{transport} HTTP/1.1\r\nHost: {host}:{port}\r\n"
            f"{upgrade if transport == 'ws' else ''}\r\n".encode()
        )
        readers.append(one)
    deadline = time.monotonic() + 5
    most = 0
    while time.monotonic() < deadline:
        most = max(most, _resident())
        time.sleep(0.1)
    for one in readers:
        one.close()
    assert most - before < 40 * SIZE // 2
    assert httpx.get(f"{served.url}/health").status_code == 200


def _resident() -> int:
    """Resident bytes of this process, in which the service runs."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * (os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else resource.getpagesize())
