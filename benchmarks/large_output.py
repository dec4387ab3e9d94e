"""Memory with large output: stalled readers of one large event, long texts, a GiB of output, and many requests at once.

The agent is `cat` of a prepared stream, so that it is not the bottleneck. The service and the client run in processes
of their own, whose resident memory is read from `/proc`.
"""

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

import httpx

from benchmarks.measure import report, verdict
from benchmarks.synthetic import write_player, write_texts

MIB = 1 << 20
READERS, EVENT = 40, 20 * MIB
LONG_TEXT, DELTA = 300 * MIB, 64 << 10
OUTPUT, MESSAGE = 1024 * MIB, 128 << 10
POSTS = 300
PATIENCE = 900.0


def resident(pid: int, key: str = "VmRSS") -> float:
    """Return the resident memory of a process in MiB; `VmHWM`: its peak."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(key)) / 1024


def _environment(scratch: Path, player: Path) -> dict[str, str]:
    return {
        **os.environ,
        "AMUX_CLAUDE_EXECUTABLE": str(player),
        "AGENT_MUX_CONFIG_DIR": str(scratch / "config"),
        "IS_SANDBOX": "1",
    }


@contextlib.contextmanager
def _service(scratch: Path, player: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "agent_mux", "serve", "--port", str(port), "--root", "/"]
    with (
        (scratch / "serve.log").open("a") as log,
        subprocess.Popen(command, env=_environment(scratch, player), stdout=log, stderr=log, text=True) as server,
    ):
        url = f"http://127.0.0.1:{port}"
        try:
            _wait_ready(url)
            yield server, url
        finally:
            server.send_signal(signal.SIGINT)
            server.wait(60)


def _wait_ready(url: str) -> None:
    for _ in range(600):
        with contextlib.suppress(httpx.HTTPError):
            if httpx.get(f"{url}/health").status_code == 200:
                return
        time.sleep(0.1)
    raise TimeoutError(url)


def _start(url: str, **fields: Any) -> str:
    request = {"agent": "claude", "prompt": "hi", "approvalMode": "yolo", "trackChanges": False, **fields}
    answer = httpx.post(f"{url}/v1/runs", json=request, timeout=60)
    answer.raise_for_status()
    return str(answer.json()["runId"])


def _wait_over(url: str, run_id: str) -> dict[str, Any]:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        view: dict[str, Any] = httpx.get(f"{url}/v1/runs/{run_id}", timeout=PATIENCE).json()
        if "endedAt" in view:
            assert view["exitReason"] == "completed", view["exitReason"]
            return view
        time.sleep(0.5)
    raise TimeoutError(run_id)


# -- stalled readers


def _stalled(url: str, path: str, *, websocket: bool) -> socket.socket:
    """Open a stream and read nothing of it."""
    host, port = url.removeprefix("http://").split(":")
    one = socket.create_connection((host, int(port)))
    upgrade = (
        "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
        if websocket
        else ""
    )
    one.sendall(f"GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\n{upgrade}\r\n".encode())
    return one


def measure_stalled_readers(scratch: Path) -> None:
    """Print the memory of the service before, with and after stalled readers of one large event."""
    lines = []
    for limited in (True, False):
        for transport in ("events", "ws"):
            stream = write_texts(scratch / "large.jsonl", total=EVENT, message=EVENT, delta=EVENT)
            with _service(scratch, write_player(scratch / "claude-large", stream)) as (server, url):
                run_id = _start(url, **({} if limited else {"maxTextBytes": 0}))
                _wait_over(url, run_id)
                before = resident(server.pid)
                path = f"/v1/runs/{run_id}/{transport}"
                readers = [_stalled(url, path, websocket=transport == "ws") for _ in range(READERS)]
                peak = _settled_peak(server.pid)
                for one in readers:
                    one.close()
                time.sleep(3)
                more = peak - before
                lines.append(
                    f"{transport:6} {'default limit' if limited else 'no limit':13}: {before:6.0f} MiB before,"
                    f" {peak:6.0f} MiB with them, {resident(server.pid):6.0f} MiB after;"
                    f" {more:5.0f} more {verdict(more, most=200)}"
                )
    report(f"{READERS} stalled readers of one event of {EVENT // MIB} MiB", lines)


def _settled_peak(pid: int) -> float:
    peak = 0.0
    for _ in range(40):
        time.sleep(0.25)
        peak = max(peak, resident(pid))
    return peak


# -- long output


def _client(scratch: Path, player: Path, *arguments: str) -> tuple[float, float]:
    """Run `amux` and return its peak memory in MiB and its seconds."""
    began = time.monotonic()
    command = [sys.executable, "-m", "agent_mux", *arguments]
    with subprocess.Popen(command, env=_environment(scratch, player), stdout=subprocess.DEVNULL) as child:
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    assert child.returncode == 0, (arguments, child.returncode)
    return usage.ru_maxrss / 1024, time.monotonic() - began


def _measure_output(scratch: Path, title: str, stream: Path) -> None:
    player = write_player(scratch / "claude-long", stream)
    run = ("run", "claude", "hi", "--yolo", "--no-track-changes", "--config-dir", str(scratch / "config"))
    lines = []
    bound = {
        "amux run": run,
        "amux run --json": (*run, "--json"),
        "amux runs show": ("runs", "show", "--config-dir", str(scratch / "config")),
        "amux runs list": ("runs", "list", "--config-dir", str(scratch / "config")),
    }
    for name, arguments in bound.items():
        peak, seconds = _client(scratch, player, *arguments)
        lines.append(f"{name:16} peak {peak:6.0f} MiB, {seconds:5.1f} s {verdict(peak, most=100)}")
    with _service(scratch, player) as (server, url):
        before, began = resident(server.pid), time.monotonic()
        run_id = _start(url)
        _wait_over(url, run_id)
        seconds, peak = time.monotonic() - began, resident(server.pid, "VmHWM")
        lines.append(f"service: {before:4.0f} before, peak {peak:6.0f} MiB, {seconds:5.1f} s {verdict(peak, most=200)}")
        began = time.monotonic()
        httpx.get(f"{url}/v1/runs", timeout=PATIENCE).raise_for_status()
        lines.append(f"GET /v1/runs {(time.monotonic() - began) * 1000:6.0f} ms, then {resident(server.pid):6.0f} MiB")
    for journal in (scratch / "config").rglob("*.journal"):
        journal.unlink()
    report(title, lines)


def measure_long_text(scratch: Path) -> None:
    """Print the memory of clients and the service for one message that is far longer than any limit."""
    stream = write_texts(scratch / "long.jsonl", total=LONG_TEXT, message=LONG_TEXT, delta=DELTA)
    _measure_output(scratch, f"One message of {LONG_TEXT // MIB} MiB", stream)
    stream.unlink()


def measure_output(scratch: Path) -> None:
    """Print the memory of clients and the service for many messages."""
    stream = write_texts(scratch / "output.jsonl", total=OUTPUT, message=MESSAGE, delta=MESSAGE)
    _measure_output(scratch, f"{OUTPUT // MIB} MiB of output", stream)
    stream.unlink()


# -- many requests at once


def measure_posts(scratch: Path) -> None:
    """Print how long `/health` takes while another process starts many runs at once."""
    stream = write_texts(scratch / "short.jsonl", total=1000, message=1000, delta=1000)
    with _service(scratch, write_player(scratch / "claude-short", stream)) as (_, url):
        command = [sys.executable, "-m", "benchmarks.large_output", url]
        delays: list[float] = []
        with (
            subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as posting,
            httpx.Client(base_url=url, timeout=PATIENCE) as http,
        ):
            end = None
            while end is None or time.monotonic() < end:  # for some seconds more, while the runs work
                began = time.monotonic()
                http.get("/health").raise_for_status()
                delays.append(time.monotonic() - began)
                time.sleep(0.02)
                if end is None and posting.poll() is not None:
                    end = time.monotonic() + 10
            posted = (posting.stdout.read() if posting.stdout is not None else "").strip()
    slowest, middle = max(delays) * 1000, median(delays) * 1000
    health = f"/health: median {middle:.1f} ms, slowest {slowest:.1f} ms {verdict(slowest, most=1000)}"
    report(f"{POSTS} simultaneous POSTs", [posted, health])


async def _post_many(url: str) -> None:
    request = {"agent": "claude", "prompt": "hi", "approvalMode": "yolo"}
    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(base_url=url, timeout=PATIENCE, limits=limits) as http:
        began = time.monotonic()
        answers = await asyncio.gather(*(http.post("/v1/runs", json=request) for _ in range(POSTS)))
        statuses = Counter(answer.status_code for answer in answers)
        print(f"answered in {time.monotonic() - began:5.2f} s: {dict(statuses)}")
        for answer in answers:
            if answer.status_code == 503:
                print(answer.text)
                break


if __name__ == "__main__":
    asyncio.run(_post_many(sys.argv[1]))
