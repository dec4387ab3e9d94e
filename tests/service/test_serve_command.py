"""`amux serve` as a process: start, refusal to start, and shutdown."""

import json
import os
import select
import signal
import socket
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import httpx
import pytest
from tests.service.commanding import PATIENCE, amux, serve

from agent_mux import validate

DEMO = {"agent": "replay", "prompt": "demo"}


def test_serve_prints_its_url_and_stops_gracefully(tmp_path: Path) -> None:
    with serve(tmp_path, "--drain", "0") as served:
        assert served.told["roots"] == [str(tmp_path)]
        assert served.told["database"] == f"sqlite:///{tmp_path}/service/service.db"
        assert httpx.get(f"{served.url}/health", timeout=PATIENCE).json()["status"] == "ok"
        run_id = httpx.post(f"{served.url}/v1/runs", json=DEMO, timeout=PATIENCE).json()["runId"]
        with httpx.stream(
            "GET",
            f"{served.url}/v1/runs/{run_id}/events",
            headers={"accept": "application/jsonl"},
            timeout=PATIENCE,
        ) as stream:
            lines = stream.iter_lines()
            events = [json.loads(next(lines))]
            served.process.send_signal(signal.SIGTERM)
            events += [json.loads(line) for line in lines]
        assert served.process.wait(PATIENCE) == 0
    assert events[-1]["exitReason"] == "aborted"
    assert validate(events[:-1]) == []
    with closing(sqlite3.connect(tmp_path / "service" / "service.db")) as database, database:
        assert database.execute("SELECT run_id, state FROM runs").fetchall() == [(run_id, "aborted")]


@pytest.mark.slow
@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
def test_a_signal_is_its_regular_end(tmp_path: Path, sign: int) -> None:
    with serve(tmp_path) as served:
        assert served.stop(sign) == (0, "")


STUBBORN = """
import signal, sys, time
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
with open(sys.argv[1], "w") as told:
    told.write("up")
time.sleep(600)
"""


@pytest.mark.slow
def test_a_second_signal_kills_what_does_not_end(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    told = {"agent": "terminal", "prompt": "hi", "command": [sys.executable, "-c", STUBBORN, str(fifo)]}
    with serve(tmp_path, "--drain", "0") as served, os.fdopen(os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)) as up:
        answer = httpx.post(f"{served.url}/v1/runs", json={**told, "gracePeriod": 600_000}, timeout=PATIENCE)
        assert answer.status_code == 201, answer.text
        assert select.select([up], [], [], PATIENCE)[0], "it ignores signals now"
        served.process.send_signal(signal.SIGINT)
        served.process.send_signal(signal.SIGTERM)  # two of one kind may become one
        assert served.process.wait(PATIENCE) == 0
    with closing(sqlite3.connect(tmp_path / "service" / "service.db")) as database, database:
        assert database.execute("SELECT state, ended_at > 0 FROM runs").fetchall() == [("aborted", 1)]


@pytest.mark.slow
def test_a_port_in_use_is_one_sentence(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = amux(tmp_path, "serve", "--port", port)
    assert done.returncode == 7
    assert done.stderr.startswith(f"error: cannot listen on 127.0.0.1:{port}: Address already in use; choose another")
    assert done.stderr.count("\n") == 1


@pytest.mark.slow
def test_another_server_in_the_directory_is_one_sentence(tmp_path: Path) -> None:
    with serve(tmp_path):
        done = amux(tmp_path, "serve", "--port", "0")
    assert (done.returncode, done.stderr.count("\n")) == (7, 1)
    assert "another `amux serve` uses" in done.stderr


@pytest.mark.slow
def test_an_unusable_database_is_one_line_on_stderr(tmp_path: Path) -> None:
    done = amux(tmp_path, "serve", "--port", "0", AGENT_MUX_DATABASE_URL="sqlite:////dev/null/x")
    assert (done.returncode, done.stderr.count("\n")) == (7, 1)
    assert "cannot use the database sqlite:////dev/null/x" in done.stderr
