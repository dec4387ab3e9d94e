"""The bridge to `opencode serve`, run as a process against a fake server."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from agent_mux_adapters.opencode.argv import BRIDGE

SERVER = Path(__file__).with_name("fake_server.py")
BOUND = 60.0  # seconds for one bridge


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """Return a program that behaves like `opencode`."""
    path = tmp_path / "opencode"
    path.write_text(f'#!/bin/sh\nexec {sys.executable} {SERVER} "$@"\n')
    path.chmod(0o755)
    return path


@contextmanager
def bridge(program: Path, behave: str = "") -> Iterator[subprocess.Popen[bytes]]:
    (program.parent / "behave").write_text(behave)
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", str(BRIDGE), str(program), str(program.parent)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def read(process: subprocess.Popen[bytes]) -> Any:
    assert process.stdout is not None
    return json.loads(process.stdout.readline())


def ask(process: subprocess.Popen[bytes], line: Any) -> Any:
    assert process.stdin is not None
    process.stdin.write((line if isinstance(line, str) else json.dumps(line)).encode() + b"\n")
    process.stdin.flush()
    return read(process)


def listening(process: subprocess.Popen[bytes]) -> None:
    """Wait until the server listens; heartbeats are omitted."""
    assert read(process) == {"type": "bridge.starting", "properties": {}}
    assert read(process) == {"type": "server.connected"}
    long = read(process)
    assert (long["type"], len(long["text"])) == ("long", 300_000)


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def is_gone(pid: int) -> bool:
    """Return whether the process ends in time."""
    deadline = time.monotonic() + BOUND
    while is_alive(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not is_alive(pid)


def server_of(program: Path) -> int:
    return int((program.parent / "pid").read_text())


def test_bridge_forwards_lines_and_ends_with_stdin(program: Path) -> None:
    with bridge(program) as process:
        listening(process)
        answer = ask(process, {"id": 1, "method": "POST", "path": "/session?x=1", "body": {"title": "ä"}})
        assert answer == {"id": 1, "status": 200, "body": {"id": "x"}}
        assert ask(process, {"id": 2, "method": "GET", "path": "/empty"}) == {"id": 2, "status": 200, "body": None}
        assert ask(process, {"id": 3, "method": "GET", "path": "/html"}) == {"id": 3, "status": 200, "body": "<html>"}
        missing = ask(process, {"id": 4, "method": "DELETE", "path": "/missing"})
        assert missing == {"id": 4, "status": 404, "body": {"message": "no"}}
        _, stderr = process.communicate(timeout=BOUND)
        assert process.returncode == 0
    assert is_gone(server_of(program))
    requests = (program.parent / "log").read_text().splitlines()
    assert requests[0] == "GET /event right "
    assert requests[1] == 'POST /session right {"title": "\\u00e4"}'
    assert requests[-1] == "POST /global/dispose right "
    assert b"a line before listening" in stderr
    assert b"something later" in stderr


@pytest.mark.parametrize("line", ["nonsense", "[]", '{"id":7}', '{"id":7,"method":"GET","path":5}'])
def test_invalid_request_gets_a_response(program: Path, line: str) -> None:
    with bridge(program) as process:
        listening(process)
        answer = ask(process, line)
        assert answer["status"] == 0
        assert answer["error"]


def test_signal_ends_bridge_and_server(program: Path) -> None:
    with bridge(program) as process:
        listening(process)
        process.send_signal(signal.SIGTERM)
        assert process.wait(BOUND) == 128 + signal.SIGTERM
    assert is_gone(server_of(program))


@pytest.mark.slow
def test_server_that_ignores_sigterm_is_killed(program: Path) -> None:
    with bridge(program, "stay") as process:
        listening(process)
        process.communicate(timeout=BOUND)
        assert process.returncode == 0
    assert is_gone(server_of(program))


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux signals a child when its parent dies")
def test_killed_bridge_leaves_no_server(program: Path) -> None:
    with bridge(program) as process:
        listening(process)
        process.kill()
        process.wait(BOUND)
        assert is_gone(server_of(program))


def test_bridge_exits_with_the_code_of_an_ended_server(program: Path) -> None:
    with bridge(program, "drop") as process:
        listening(process)
        assert process.wait(BOUND) == 5


def test_bridge_exits_as_a_shell_does_when_its_server_is_killed(program: Path) -> None:
    with bridge(program) as process:
        listening(process)
        os.kill(server_of(program), signal.SIGKILL)
        assert process.wait(BOUND) == 128 + signal.SIGKILL


def test_bridge_exits_with_the_code_of_a_server_that_never_listens(program: Path) -> None:
    with bridge(program, "exit") as process:
        stdout, stderr = process.communicate(timeout=BOUND)
        assert (process.returncode, stdout.count(b"\n")) == (3, 1)
        assert b"a line before listening" in stderr


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_password_is_in_the_server_environment_only(program: Path) -> None:
    with bridge(program) as process:
        listening(process)
        environment = Path(f"/proc/{server_of(program)}/environ").read_bytes().split(b"\0")
        [entry] = [entry for entry in environment if entry.startswith(b"OPENCODE_SERVER_PASSWORD=")]
        secret = entry.partition(b"=")[2]
        assert len(secret) > 30
        for pid in (process.pid, server_of(program)):
            assert secret not in Path(f"/proc/{pid}/cmdline").read_bytes()
        assert secret not in Path(f"/proc/{process.pid}/environ").read_bytes()
    assert "OPENCODE_SERVER_PASSWORD" not in os.environ


def test_bridge_requires_two_arguments() -> None:
    done = subprocess.run([sys.executable, "-I", "-S", str(BRIDGE)], capture_output=True, timeout=BOUND, check=False)
    assert done.returncode == 2
    assert b"usage" in done.stderr


def test_program_that_cannot_start_is_reported(tmp_path: Path) -> None:
    command = [sys.executable, "-I", "-S", str(BRIDGE), str(tmp_path / "nothing"), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, timeout=BOUND, check=False)
    assert done.returncode == 127
    assert b"nothing: No such file" in done.stderr
