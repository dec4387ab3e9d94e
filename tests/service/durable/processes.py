"""Server processes from outside: started, asked, watched, killed."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import httpx

from agent_mux.process.marker import processes_of

REPOSITORY = Path(__file__).parents[3]
PATIENCE = 60.0  # seconds


def until(condition: Callable[[], Any], seconds: float = PATIENCE) -> Any:
    """Wait for it, and give what it gives."""
    deadline = time.monotonic() + seconds
    while not (found := condition()) and time.monotonic() < deadline:
        time.sleep(0.005)
    assert found, "it did not happen"
    return found


class ServerProcess:
    """`amux serve` with the scripted agent."""

    def __init__(self, directory: Path, body: str, **chosen: Any) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.service.durable.server", str(directory), json.dumps(chosen), body],
            stdout=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            cwd=REPOSITORY,
            text=True,
        )
        assert self.process.stdout is not None
        self.readers: list[Reader] = []
        self.url = self.process.stdout.readline().strip()
        assert self.url, "the server did not start"
        self.http = httpx.Client(base_url=self.url, timeout=PATIENCE, limits=httpx.Limits(max_connections=None))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end(signal.SIGKILL)
        for reader in self.readers:
            reader.thread.join(PATIENCE)
        self.http.close()

    def end(self, number: signal.Signals) -> None:
        """Send it a signal, and wait until it is gone."""
        self.process.send_signal(number)
        self.process.wait(PATIENCE)
        assert self.process.stdout is not None
        self.process.stdout.close()

    def reapers(self) -> list[int]:
        """Its process that ends the runs when it dies."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return [int(pid) for pid in children if b"reaper_process.py" in Path(f"/proc/{pid}/cmdline").read_bytes()]

    def create(self, **fields: Any) -> str:
        """A run; gives its id."""
        answer = self.http.post("/v1/runs", json={"agent": "scripted", "prompt": "hi", **fields})
        assert answer.status_code == 201, answer.text
        return str(answer.json()["runId"])

    def run(self, run_id: str) -> dict[str, Any]:
        """What is said of it."""
        answer = self.http.get(f"/v1/runs/{run_id}")
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    def runs(self, **wanted: Any) -> list[dict[str, Any]]:
        """All of them, page by page."""
        found: list[dict[str, Any]] = []
        cursor: dict[str, str] = {}
        while True:
            page = self.http.get("/v1/runs", params={"limit": 200, **wanted, **cursor}).raise_for_status().json()
            found += page["runs"]
            if "next" not in page:
                return found
            cursor = {"cursor": page["next"]}

    def watch(self, run_id: str) -> "Reader":
        """Somebody who reads the messages of a run from now on."""
        self.readers.append(Reader(self, run_id))
        return self.readers[-1]

    def stream(self, run_id: str) -> dict[int, bytes]:
        """All messages of a run, until it is over."""
        reader = self.watch(run_id)
        reader.thread.join(PATIENCE)
        assert not reader.thread.is_alive()
        assert not reader.was_cut_off
        return reader.seen


class Reader:
    """Notes every message of a run with its number, until the server is gone."""

    def __init__(self, server: ServerProcess, run_id: str) -> None:
        self.run_id = run_id
        self.seen: dict[int, bytes] = {}
        self.was_cut_off = False
        self._http = server.http
        self.thread = threading.Thread(target=self._read)
        self.thread.start()

    def _read(self) -> None:
        rest = b""
        try:
            with self._http.stream("GET", f"/v1/runs/{self.run_id}/events") as answer:
                for chunk in answer.iter_raw():
                    *messages, rest = (rest + chunk).split(b"\n\n")
                    for message in messages:
                        self._note(message)
        except httpx.TransportError:
            self.was_cut_off = True  # the server was killed

    def _note(self, message: bytes) -> None:
        if message.startswith(b"id: "):
            number, _, data = message.removeprefix(b"id: ").partition(b"\ndata: ")
            assert int(number) not in self.seen
            self.seen[int(number)] = data


def events_of(messages: dict[int, bytes]) -> list[dict[str, Any]]:
    """Decoded, in order, without the result."""
    assert list(messages) == list(range(len(messages)))
    decoded = [json.loads(data) for data in messages.values()]
    return [event for event in decoded if event["type"] != "run_result"]


def nothing_lives(run_ids: list[str]) -> bool:
    """No process of these runs is there."""
    return not any(processes_of(run_id) for run_id in run_ids)


def kill(pids: list[int]) -> None:
    """Outright."""
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
