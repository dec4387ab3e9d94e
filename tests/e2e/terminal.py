"""The installed `amux`, run as a user would: from a script, or at a terminal."""

import json
import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.e2e.harness import BOUND, POLL_INTERVAL, LiveAgent, assert_nothing_left

from agent_mux import decode_event, validate

AMUX = Path(sys.executable).with_name("amux")
READ_SIZE = 65536


@dataclass(frozen=True)
class CommandOutput:
    """What a command came to."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[dict[str, Any]]:
        """Its standard output as JSONL."""
        return [json.loads(line) for line in self.out.splitlines()]

    def check_stream(self) -> tuple[list[str], dict[str, Any]]:
        """The types of the events and the result that `run --json` printed; the stream is lawful, nothing is left."""
        *events, result = self.out.splitlines()
        decoded = [decode_event(line) for line in events]
        assert validate(decoded) == []
        told: dict[str, Any] = json.loads(result)
        assert told["type"] == "run_result"
        assert told["ledger"]["unknown"] == {}
        assert_nothing_left(told["runId"])
        return [event.type for event in decoded], told


def amux(live: LiveAgent, *arguments: str, stdin: str | None = None) -> CommandOutput:
    """Run it without a terminal. `stdin` makes a pipe of it; else it is `/dev/null`."""
    done = subprocess.run(
        [AMUX, *arguments],
        cwd=live.workspace,
        env=environment(live),
        **({"input": stdin} if stdin is not None else {"stdin": subprocess.DEVNULL}),
        capture_output=True,
        text=True,
        timeout=live.kit.patience,
        check=False,
    )
    return CommandOutput(done.returncode, done.stdout, done.stderr)


def amux_at_terminal(live: LiveAgent, *arguments: str, when: str, type_in: str) -> CommandOutput:
    """Run it at a terminal, where a person types something as soon as they see something."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [AMUX, *arguments], cwd=live.workspace, env=environment(live), stdin=theirs, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    try:
        shown = _converse(ours, when, type_in)
        return CommandOutput(process.wait(BOUND), shown, "")
    finally:
        process.kill()
        process.wait()
        os.close(ours)


@contextmanager
def running_amux(live: LiveAgent, *arguments: str, until: str) -> Iterator[subprocess.Popen[str]]:
    """It runs, and its agent's tool has made this file."""
    process = subprocess.Popen(
        [AMUX, *arguments],
        cwd=live.workspace,
        env=environment(live),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        wait_until(live.file(until).exists)
        yield process
    finally:
        process.kill()
        process.communicate()


def wait_until(holds: Callable[[], bool]) -> None:
    """Wait for what nobody tells of."""
    deadline = time.monotonic() + BOUND
    while not holds():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(POLL_INTERVAL)


def environment(live: LiveAgent) -> dict[str, str]:
    """The whole environment of the command, and so of the agent."""
    return {**live.launch.environment, "AGENT_MUX_CONFIG_DIR": str(live.config_directory)}


def _converse(terminal: int, when: str, type_in: str) -> str:
    shown, typed, deadline = b"", False, time.monotonic() + BOUND
    while chunk := _read(terminal, deadline):
        shown += chunk
        if not typed and when.encode() in shown:
            os.write(terminal, type_in.encode())
            typed = True
    return shown.decode("utf-8", "replace")


def _read(terminal: int, deadline: float) -> bytes:
    """What is shown next; empty when the other end is closed."""
    ready, _, _ = select.select([terminal], [], [], max(deadline - time.monotonic(), 0))
    assert ready, "nothing was shown for too long"
    try:
        return os.read(terminal, READ_SIZE)
    except OSError:  # EIO: nobody has the other end any more
        return b""
