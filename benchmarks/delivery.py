"""What the service adds: from an event's emission to its arrival at those who watch over SSE.

A server in a process of its own, replaying recordings at their own speed; in another, the watchers: raw sockets, so
that what is measured is the server. Every watcher must get every event, in order: their lines are hashed and compared
with those of the journal. The figure to compare with is one run that one watcher sees.
"""

import asyncio
import contextlib
import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from array import array
from collections import defaultdict
from pathlib import Path
from typing import Any

import httpx

from agent_mux.service.application import make_application
from agent_mux.service.serving import Server
from agent_mux.service.settings import Settings

RUNS, WATCHERS = 50, 20
RECORDING = {"agent": "replay", "prompt": "demo", "approvalMode": "yolo"}
PATIENCE = 300.0


# -- the server


def serve(directory: str) -> None:
    """Serve until told to stop; then say when each event was emitted."""
    times: dict[str, array[int]] = {}
    settings = Settings(config_dir=Path(directory), port=0, max_concurrent_runs=None, queue_limit=None)
    server = Server(make_application(settings), settings)

    async def watch() -> None:
        await asyncio.to_thread(server.started_event.wait)

        def observe(run: Any) -> Any:
            emitted = times[run.run_id] = array("q")
            run.on("*", lambda _: emitted.append(time.monotonic_ns()))
            return lambda: None

        server.service.mux.on_run(observe)
        print(server.url, flush=True)

    async def main() -> None:
        watching = asyncio.create_task(watch())
        await server.serve()
        await watching

    with contextlib.suppress(KeyboardInterrupt):  # uvicorn raises it again when it has stopped
        asyncio.run(main())
    Path(directory, "emitted.json").write_text(json.dumps({run: list(at) for run, at in times.items()}))
    print(f"cpu {time.process_time():.2f}", file=sys.stderr)


# -- the watchers


class Watcher(asyncio.Protocol):
    """One reader of a stream: counts, hashes, and notes when each event came."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.numbers = array("q")
        self.times = array("q")
        self.hash = hashlib.blake2b()
        self.rest = b""
        self.body = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport.write(f"GET {self.path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())  # type: ignore[attr-defined]

    def data_received(self, data: bytes) -> None:
        now = time.monotonic_ns()
        self.rest += data
        *blocks, self.rest = self.rest.split(b"\n\n")
        for block in blocks:
            at = block.find(b"id: ")
            if at < 0:
                continue
            number, _, line = block[at + 4 :].partition(b"\ndata: ")
            self.numbers.append(int(number))
            self.times.append(now)
            self.hash.update(line + b"\n")
            if line.startswith(b'{"type":"run_result"') and not self.done.done():
                self.done.set_result(None)

    def connection_lost(self, error: Exception | None) -> None:
        if not self.done.done():
            self.done.set_exception(error or ConnectionError("the stream ended before its result"))


async def watch_runs(url: str, runs: int, watchers: int) -> dict[str, list[Watcher]]:
    """Start so many runs, each with so many watchers, and wait until all have seen the end."""
    host, port = url.removeprefix("http://").split(":")
    loop = asyncio.get_running_loop()
    found: dict[str, list[Watcher]] = defaultdict(list)
    async with httpx.AsyncClient(base_url=url, timeout=PATIENCE) as http:
        for _ in range(runs):
            run_id = (await http.post("/v1/runs", json=RECORDING)).json()["runId"]
            for _ in range(watchers):
                path = f"/v1/runs/{run_id}/events?accumulated=false"
                _, watcher = await loop.create_connection(lambda path=path: Watcher(path), host, int(port))
                found[run_id].append(watcher)
        await asyncio.wait_for(asyncio.gather(*(one.done for many in found.values() for one in many)), PATIENCE)
        for run_id, many in found.items():
            answer = await http.get(
                f"/v1/runs/{run_id}/events?accumulated=false", headers={"accept": "application/jsonl"}
            )
            wanted = hashlib.blake2b(answer.content).digest()
            count = answer.content.count(b"\n")
            for one in many:
                assert list(one.numbers) == list(range(count)), "a gap, or an event twice"
                assert one.hash.digest() == wanted, "a line is not what the journal says"
    return found


def measure(scratch: Path, runs: int, watchers: int) -> dict[str, float]:
    """Milliseconds from emission to arrival, and the processor time of the server."""
    directory = scratch / f"{runs}x{watchers}"
    directory.mkdir()
    environment = {**os.environ, "AMUX_REPLAY_SPEED": os.environ.get("AMUX_REPLAY_SPEED", "1")}
    with subprocess.Popen(
        [sys.executable, "-m", "benchmarks.delivery", str(directory)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment, text=True,
    ) as server:  # fmt: skip
        assert server.stdout is not None
        url = server.stdout.readline().strip()
        began = time.monotonic()
        found = asyncio.run(watch_runs(url, runs, watchers))
        took = time.monotonic() - began
        server.send_signal(signal.SIGINT)
        _, errors = server.communicate(timeout=60)
    emitted = json.loads((directory / "emitted.json").read_text())
    late = sorted(
        (at - emitted[run_id][number]) / 1e6
        for run_id, many in found.items()
        for one in many
        for number, at in zip(one.numbers, one.times, strict=True)
        if number < len(emitted[run_id])
    )
    cpu = float(errors.rsplit("cpu ", 1)[-1].split()[0])
    return {
        "events": len(late), "took": took, "cpu": cpu,
        "p50": late[len(late) // 2], "p99": late[len(late) * 99 // 100], "max": late[-1],
    }  # fmt: skip


def main(scratch: Path) -> None:
    """One run with one watcher, and many with many."""
    for runs, watchers in ((1, 1), (10, 10), (RUNS, WATCHERS)):
        figures = measure(scratch, runs, watchers)
        print(
            f"delivery  {runs:3} runs x {watchers:2} watchers"
            f"  {figures['events']:7.0f} events in {figures['took']:5.1f} s"
            f"  p50 {figures['p50']:7.2f} ms  p99 {figures['p99']:8.2f} ms  max {figures['max']:8.2f} ms"
            f"  server {figures['cpu']:5.1f} s cpu"
        )


if __name__ == "__main__":
    serve(sys.argv[1])
