"""Every reader gets every event, once and in order, however often it is cut off, and however slow it is.

`AMUX_DELIVERY=full` takes as many readers and reconnections as are promised (`make delivery`).
"""

import asyncio
import os
import random
import socket
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
from tests.service.serving import Serving, serving
from tests.service.standalone import standalone
from tests.service.streams import Stream, read_all

IS_FULL = os.environ.get("AMUX_DELIVERY") == "full"
RECONNECTIONS = 500 if IS_FULL else 60
RUNS, WATCHERS = (50, 20) if IS_FULL else (4, 5)
READERS = 10
SEED = 20_261_122
PATIENCE = 240.0
STALLED = 20
FLOOD = """
read(); emit(session="S")
for number in range(20000): print("%06d " % number + "x" * 1000)
emit(text="done"); emit(over=True); emit(done=True); drain()
"""


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> object:
    monkeypatch.setenv("AMUX_REPLAY_SPEED", "1" if IS_FULL else "20")
    with serving(tmp_path, max_concurrent_runs=None) as server:
        yield server


def demo(served: Serving) -> str:
    return str(served.http.post("/v1/runs", json={"agent": "replay", "prompt": "demo"}).json()["runId"])


def lines_of(served: Serving, run_id: str, *, accumulated: str = "true") -> list[bytes]:
    answer = served.http.get(
        f"/v1/runs/{run_id}/events", headers={"accept": "application/jsonl"}, params={"accumulated": accumulated}
    )
    return answer.content.splitlines()


@pytest.mark.slow
def test_every_watcher_of_many_runs_gets_every_event_in_order(served: Serving) -> None:
    runs = [demo(served) for _ in range(RUNS)]

    async def watch() -> list[tuple[str, list[tuple[int, bytes]]]]:
        readers = [(run, read_all(served.url, run, accumulated="false")) for run in runs for _ in range(WATCHERS)]
        async with asyncio.timeout(PATIENCE):
            seen = await asyncio.gather(*(reader for _, reader in readers))
        return [(run, one) for (run, _), one in zip(readers, seen, strict=True)]

    seen = asyncio.run(watch())
    body = {run: lines_of(served, run, accumulated="false") for run in runs}
    for run, messages in seen:
        assert messages == list(enumerate(body[run]))


@pytest.mark.slow
def test_no_gap_and_no_double_at_any_point_of_reconnection(served: Serving) -> None:
    """Cut at random bytes, both while the run is live and when only its journal is left."""
    choose = random.Random(SEED)  # noqa: S311  # it chooses where to cut
    runs = [demo(served) for _ in range(READERS)]

    async def read_in_pieces(run: str, cuts: int) -> list[tuple[int, bytes]]:
        seen: list[tuple[int, bytes]] = []
        for left in range(cuts, -1, -1):
            stream = Stream(served.url, run, last=seen[-1][0] if seen else None)
            seen += await stream.read(until=choose.randrange(1, 60_000) if left else None)
            if seen and b'"run_result"' in seen[-1][1][:30]:
                seen = [] if left else seen  # begin again, until all cuts are made
        return seen

    async def read() -> list[list[tuple[int, bytes]]]:
        async with asyncio.timeout(PATIENCE):
            return await asyncio.gather(*(read_in_pieces(run, RECONNECTIONS // READERS) for run in runs))

    for run, messages in zip(runs, asyncio.run(read()), strict=True):
        assert messages == list(enumerate(lines_of(served, run)))


@pytest.mark.slow
def test_a_stalled_reader_uses_bounded_memory_delays_no_other_and_misses_no_event(tmp_path: Path) -> None:
    with standalone(tmp_path, FLOOD) as (url, process), httpx.Client(base_url=url, timeout=PATIENCE) as http:
        _flood(http)
        before = _resident(process.pid)
        _flood(http)
        usual = _resident(process.pid) - before
        stalled: list[socket.socket] = []
        lines = _flood(http, lambda run_id: stalled.extend(_stalled(url, run_id) for _ in range(STALLED)))
        cost = _resident(process.pid) - before - 2 * usual
        for one in stalled[1:]:
            one.close()
        rest = asyncio.run(Stream.of(stalled[0]).read())
    assert len(lines) > 20_000
    assert rest == list(enumerate(lines))
    assert cost < STALLED << 20, f"{STALLED} readers who stall at 20 MB each cost {cost >> 20} MiB"


def _flood(http: httpx.Client, meanwhile: Callable[[str], object] = str) -> list[bytes]:
    """The lines of a run that prints 20 MB."""
    run_id = http.post("/v1/runs", json={"agent": "scripted", "prompt": "hi"}).json()["runId"]
    meanwhile(run_id)
    path, wanted = f"/v1/runs/{run_id}/events?accumulated=false", {"accept": "application/jsonl"}
    return http.get(path, headers=wanted).content.splitlines()


def _stalled(url: str, run_id: str) -> socket.socket:
    """Asks for the events, and reads nothing."""
    host, _, port = url.removeprefix("http://").partition(":")
    reader = socket.socket()
    reader.connect((host, int(port)))
    reader.sendall(f"GET /v1/runs/{run_id}/events?accumulated=false HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    return reader


def _resident(pid: int) -> int:
    """Bytes of memory."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
