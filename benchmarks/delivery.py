"""The delay of the service, from the emission of an event to its arrival at SSE readers.

The server runs in its own process and replays recordings at their original speed. The readers use raw sockets, so that
the server dominates the result. Every reader must receive every event in order: the lines are hashed and compared with
those derived from the journal. The baseline is one run with one reader.
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
from agent_mux.service.server import HttpServer
from agent_mux.service.settings import ServiceSettings

RUNS, READERS = 50, 20
RECORDING = {"agent": "replay", "prompt": "demo", "approvalMode": "yolo"}
PATIENCE = 300.0


# -- the server


def serve(directory: str) -> None:
    """Serve until SIGINT, then write the emission time of each event."""
    times: dict[str, array[int]] = {}
    settings = ServiceSettings(config_dir=Path(directory), port=0, max_concurrent_runs=None, queue_limit=None)
    server = HttpServer(make_application(settings), settings)

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


# -- the readers


class Reader(asyncio.Protocol):
    """One reader of a stream: counts and hashes events, and records their arrival times."""

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


async def read_runs(url: str, runs: int, readers: int) -> dict[str, list[Reader]]:
    """Start the runs with their readers, and wait until all readers have received the end."""
    host, port = url.removeprefix("http://").split(":")
    loop = asyncio.get_running_loop()
    found: dict[str, list[Reader]] = defaultdict(list)
    async with httpx.AsyncClient(base_url=url, timeout=PATIENCE) as http:
        for _ in range(runs):
            run_id = (await http.post("/v1/runs", json=RECORDING)).json()["runId"]
            for _ in range(readers):
                path = f"/v1/runs/{run_id}/events?accumulated=false"
                _, reader = await loop.create_connection(lambda path=path: Reader(path), host, int(port))
                found[run_id].append(reader)
        await asyncio.wait_for(asyncio.gather(*(one.done for many in found.values() for one in many)), PATIENCE)
        for run_id, many in found.items():
            answer = await http.get(
                f"/v1/runs/{run_id}/events?accumulated=false", headers={"accept": "application/jsonl"}
            )
            wanted = hashlib.blake2b(answer.content).digest()
            count = answer.content.count(b"\n")
            for one in many:
                assert list(one.numbers) == list(range(count)), "a gap, or an event twice"
                assert one.hash.digest() == wanted, "a line differs from the journal"
    return found


def measure(scratch: Path, runs: int, readers: int) -> dict[str, float]:
    """Return the delays from emission to arrival in milliseconds, and the CPU time of the server."""
    directory = scratch / f"{runs}x{readers}"
    directory.mkdir()
    environment = {**os.environ, "AMUX_REPLAY_SPEED": os.environ.get("AMUX_REPLAY_SPEED", "1")}
    with subprocess.Popen(
        [sys.executable, "-m", "benchmarks.delivery", str(directory)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment, text=True,
    ) as server:  # fmt: skip
        assert server.stdout is not None
        url = server.stdout.readline().strip()
        began = time.monotonic()
        found = asyncio.run(read_runs(url, runs, readers))
        took = time.monotonic() - began
        server.send_signal(signal.SIGINT)
        _, errors = server.communicate(timeout=60)
    emitted = json.loads((directory / "emitted.json").read_text())
    delays = sorted(
        (at - emitted[run_id][number]) / 1e6
        for run_id, many in found.items()
        for one in many
        for number, at in zip(one.numbers, one.times, strict=True)
        if number < len(emitted[run_id])
    )
    cpu = float(errors.rsplit("cpu ", 1)[-1].split()[0])
    return {
        "events": len(delays), "took": took, "cpu": cpu,
        "p50": delays[len(delays) // 2], "p99": delays[len(delays) * 99 // 100], "max": delays[-1],
    }  # fmt: skip


def main(scratch: Path) -> None:
    """Measure one run with one reader, and several runs with several readers."""
    for runs, readers in ((1, 1), (10, 10), (RUNS, READERS)):
        figures = measure(scratch, runs, readers)
        print(
            f"delivery  {runs:3} runs x {readers:2} readers"
            f"  {figures['events']:7.0f} events in {figures['took']:5.1f} s"
            f"  p50 {figures['p50']:7.2f} ms  p99 {figures['p99']:8.2f} ms  max {figures['max']:8.2f} ms"
            f"  server {figures['cpu']:5.1f} s cpu"
        )


if __name__ == "__main__":
    serve(sys.argv[1])
