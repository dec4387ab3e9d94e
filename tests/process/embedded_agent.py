"""`amux-agent` as a separate process with a scripted model, driven through its pipes."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import Empty, Queue
from typing import Any

import msgspec

from agent_mux.contract import validate
from agent_mux.events import Rebuilder

PATIENCE = 60.0
"""The limit of every wait in seconds."""
COMMAND = (sys.executable, "-m", "agent_loop")


class Sandbox:
    """A working directory and a home directory for `amux-agent`."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.work = root / "work"
        self.home = root / "home"
        self.work.mkdir()
        self._scripts = 0

    def script(self, *steps: dict[str, Any], **known: Any) -> str:
        """Write a script of model responses and return its model name."""
        self._scripts += 1
        path = self.root / f"script{self._scripts}.json"
        path.write_text(json.dumps({"steps": list(steps), **known}))
        return f"scripted:{path}"

    @property
    def environment(self) -> dict[str, str]:
        hidden = ("API_KEY", "AMUX_AGENT")
        kept = {name: value for name, value in os.environ.items() if not any(part in name for part in hidden)}
        return {**kept, "AMUX_AGENT_HOME": str(self.home), "PYTHONWARNINGS": "error::ResourceWarning"}

    def run(self, *argv: str, stdin: str = "", **environment: str) -> "subprocess.CompletedProcess[str]":
        """Run a command line to its end."""
        return subprocess.run(
            [*COMMAND, *argv], input=stdin, capture_output=True, text=True, check=False, cwd=self.work,
            env={**self.environment, **environment}, timeout=PATIENCE,
        )  # fmt: skip

    @contextmanager
    def controlled(self, **start: Any) -> Iterator["ControlledAgent"]:
        """Start the program with --control; it is killed at the end of the block."""
        process = subprocess.Popen(
            [*COMMAND, "--control"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            cwd=self.work, env=self.environment, start_new_session=True,
        )  # fmt: skip
        driven = ControlledAgent(process)
        try:
            driven.send("start", protocol=1, **start)
            yield driven
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait(PATIENCE)
            driven.close()


class ControlledAgent:
    """The running program and the lines that it has printed."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self.process = process
        self.lines: list[dict[str, Any]] = []
        self._queue: Queue[bytes | None] = Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._queue.put(line)
        self._queue.put(None)

    def send(self, kind: str, **fields: Any) -> None:
        """Send a control line."""
        self.write(json.dumps({"type": kind, **fields}).encode() + b"\n")

    def write(self, data: bytes) -> None:
        """Write bytes to standard input."""
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def end_input(self) -> None:
        """Close standard input."""
        assert self.process.stdin is not None
        self.process.stdin.close()

    def read_until(self, kind: str, **fields: Any) -> dict[str, Any]:
        """Read up to the next line of this type that has these fields."""
        while True:
            line = self._next()
            assert line is not None, f"no {kind} line; received {[one['type'] for one in self.lines]}"
            if line["type"] == kind and all(line.get(name) == value for name, value in fields.items()):
                return line

    def wait_for_exit(self) -> int:
        """Read all output, check that it conforms and that stderr is empty, and return the exit code."""
        while self._next() is not None:
            pass
        code = self.process.wait(PATIENCE)
        assert self.process.stderr is not None
        assert self.process.stderr.read() == b""
        assert violations(self.lines) == []
        return code

    def lines_of(self, *kinds: str) -> list[dict[str, Any]]:
        return [line for line in self.lines if line["type"] in kinds]

    def messages(self) -> list[str]:
        """Return the texts of all messages so far."""
        return [line["text"] for line in self.lines_of("message_stop")]

    def _next(self) -> dict[str, Any] | None:
        try:
            line = self._queue.get(timeout=PATIENCE)
        except Empty:
            raise AssertionError(f"no more output after {self.lines[-3:]}") from None
        if line is None:
            self._queue.put(None)
            return None
        self.lines.append(msgspec.json.decode(line))
        return self.lines[-1]

    def close(self) -> None:
        self._reader.join(PATIENCE)
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            if pipe is not None:
                with suppress(BrokenPipeError):
                    pipe.close()


def violations(lines: Sequence[dict[str, Any]], *, complete: bool = True) -> list[Any]:
    """Return the violations of the event contract."""
    rebuilder = Rebuilder()
    events = [rebuilder.decode(json.dumps(line).encode()) for line in lines if line["type"] != "response"]
    return list(validate(events, complete=complete))
