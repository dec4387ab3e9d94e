"""The lanes of `amux compare` at a terminal: requests are answered by keys, and the terminal is restored."""

import os
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pexpect
import pyte
import pytest
from tests.process.compared_agents import make_repository

RECORDING = Path(__file__).parents[2] / "fixtures" / "codex" / "0.169.0" / "as_approval_accept"
CANDIDATES = 6
TIMEOUT = 120.0  # seconds
pytestmark = pytest.mark.slow


class Lanes:
    """A comparison of candidates that wait for an approval, at a terminal."""

    def __init__(self, child: Any, columns: int) -> None:
        self.child = child
        self.modes = termios.tcgetattr(child.child_fd)
        self._screen = pyte.Screen(columns, 24)
        self._stream = pyte.ByteStream(self._screen)

    @property
    def text(self) -> str:
        return "\n".join(line.rstrip() for line in self._screen.display)

    def wait_for(self, *texts: str) -> None:
        """Wait until the screen shows all texts."""
        deadline = time.monotonic() + TIMEOUT
        while not all(text in self.text for text in texts):
            assert time.monotonic() < deadline, self.text
            try:
                self._stream.feed(self.child.read_nonblocking(65536, timeout=1))
            except pexpect.TIMEOUT:
                continue

    def wait_for_end(self) -> int | None:
        """Wait until the program has ended, and return its exit code."""
        self.child.expect(pexpect.EOF, timeout=TIMEOUT)
        self._stream.feed(self.child.before)
        assert termios.tcgetattr(self.child.child_fd)[3] == self.modes[3]
        assert not self._screen.cursor.hidden
        self.child.close()
        exit_code: int | None = self.child.exitstatus
        return exit_code


@contextmanager
def lanes_of(tmp_path: Path, columns: int) -> Iterator[Lanes]:
    repository = make_repository(tmp_path / "repository")
    names = [word for number in range(CANDIDATES) for word in ("--with", f"replay,name=candidate-{number}")]
    child = pexpect.spawn(
        sys.executable,
        ["-m", "agent_mux", "compare", str(RECORDING), *names, f"--jobs={CANDIDATES}", "--check=true"],
        env={**os.environ, "HOME": str(tmp_path), "AMUX_REPLAY_SPEED": "0", "TERM": "xterm-256color"},
        dimensions=(24, columns),
        cwd=str(repository),
    )
    try:
        yield Lanes(child, columns)
    finally:
        child.close(force=True)


@pytest.mark.parametrize("columns", [60, 80])
def test_requests_are_approved_trials_aborted_and_the_comparison_stopped(tmp_path: Path, columns: int) -> None:
    with lanes_of(tmp_path, columns) as lanes:
        lanes.wait_for("6 working", "a approve", *(f"candidate-{number}-1  wants" for number in range(CANDIDATES)))
        lanes.child.send("a")
        lanes.wait_for(": approved", "1 of 6 trials done", "5 working")
        lanes.child.send("x")
        lanes.wait_for(": aborting", "2 of 6 trials done", "4 working")
        lanes.child.send("q")
        lanes.wait_for("trials are left")
        assert lanes.wait_for_end() == 0


def test_terminal_is_restored_after_an_interrupt(tmp_path: Path) -> None:
    with lanes_of(tmp_path, 80) as lanes:
        lanes.wait_for("6 working", "a approve")
        lanes.child.send("\x03")
        assert lanes.wait_for_end() not in {None, 0}
