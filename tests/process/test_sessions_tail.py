"""`amux sessions watch` follows a session while its file grows, until Ctrl-C."""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

STORE = Path(__file__).parents[1] / "stores" / "codex" / "0.169.0" / "home"
SESSION = "01a20343-60f0-7da1-90cd-46f6cb877ff6"
BOUND = 60.0  # seconds


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return Path(shutil.copytree(STORE, tmp_path / "home"))


@pytest.fixture
def tail(home: Path) -> Iterator["subprocess.Popen[str]"]:
    command = [sys.executable, "-m", "agent_mux.cli.main", "sessions", "watch", SESSION, "--all", "--json", "--compact"]
    environment = {**os.environ, "HOME": str(home), "AGENT_MUX_CONFIG_DIR": str(home / "mux")}
    process = subprocess.Popen(
        command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    late = threading.Timer(BOUND, process.kill)
    late.start()
    try:
        yield process
    finally:
        late.cancel()
        process.kill()
        process.communicate()


def texts(process: "subprocess.Popen[str]", last: str) -> list[str]:
    """Return the message texts up to this one."""
    received: list[str] = []
    assert process.stdout is not None
    for line in process.stdout:
        event: dict[str, Any] = json.loads(line)
        if event["type"] == "message_stop":
            received.append(event["text"])
        if received and received[-1] == last:
            return received
    raise AssertionError(f"it ended after {received}")


@pytest.mark.slow
def test_messages_stored_later_are_printed_later(tail: "subprocess.Popen[str]", home: Path) -> None:
    assert texts(tail, "First answer.") == ["First answer."]
    [path] = home.rglob(f"*-{SESSION}.jsonl")
    rows = path.read_text(encoding="utf-8").splitlines(keepends=True)
    answer = next(row for row in rows if '"AgentMessage"' in row and "First answer." in row)
    with path.open("a", encoding="utf-8") as file:
        file.write(answer.replace("First answer.", "Another answer.").replace('"id":"msg_', '"id":"msg_another_'))
        file.write(next(row for row in rows if '"task_complete"' in row))
    assert texts(tail, "Another answer.") == ["Another answer."]
    tail.send_signal(signal.SIGINT)
    out, err = tail.communicate(timeout=BOUND)
    assert (tail.returncode, err) == (0, "")
    assert all(json.loads(line)["type"] for line in out.splitlines())
