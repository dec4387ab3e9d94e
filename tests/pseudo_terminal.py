"""A program at a pseudo-terminal: pexpect drives it, pyte emulates the screen. Every wait is bounded."""

import os
import pty
import signal
import termios
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import pexpect
import pyte

PATIENCE = 60.0  # seconds; allows for a slow machine, not for a slow command
COLUMNS, ROWS = 200, 120  # large enough that nothing scrolls or wraps
READ_SIZE = 65536


class PseudoTerminal:
    """A program that runs at a terminal of its own, as the leader of its session. The kernel hangs up when it ends."""

    def __init__(
        self, command: Sequence[str], environment: Mapping[str, str], cwd: Path, *, patience: float = PATIENCE
    ) -> None:
        self.output = ""
        """Everything that the program has written, with its escape sequences."""
        self._patience = patience
        self._screen = pyte.Screen(COLUMNS, ROWS)
        self._stream = pyte.Stream(self._screen)
        self._initial_attributes = default_attributes()
        with warnings.catch_warnings():
            # Python >= 3.12 warns of fork in a process with threads; the child only replaces itself.
            warnings.simplefilter("ignore", DeprecationWarning)
            self._child: pexpect.spawn[str] = pexpect.spawn(
                command[0],
                list(command[1:]),
                env=dict(environment),
                cwd=str(cwd),
                timeout=patience,
                maxread=READ_SIZE,
                encoding="utf-8",
                codec_errors="replace",
                dimensions=(ROWS, COLUMNS),
                preexec_fn=_restore_signals,
            )
        self._child.delaybeforesend = None
        self._child.logfile_read = self  # receives what is read, by `write` and `flush`

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._child.isalive():
            self._child.kill(signal.SIGKILL)
        self._child.close(force=True)

    def write(self, text: str) -> None:
        """Show output of the program."""
        self.output += text
        self._stream.feed(text)

    def flush(self) -> None:
        """Do nothing: pexpect calls it after `write`."""

    # Typing

    def type(self, text: str) -> None:
        """Type keys."""
        self._child.send(text)

    def enter(self, line: str) -> None:
        """Type a line and press Enter."""
        self.type(line + "\r")

    def resize(self, columns: int, rows: int) -> None:
        """Change the size of the window, of which the kernel notifies the program."""
        self._child.setwinsize(rows, columns)

    def send_signal(self, number: signal.Signals) -> None:
        """Send a signal to the program."""
        self._child.kill(number)

    def hang_up(self) -> None:
        """Close the terminal while the program runs."""
        self._child.ptyproc.fileobj.close()

    # Reading

    @property
    def lines(self) -> list[str]:
        """The non-empty lines on the screen."""
        return [line.rstrip() for line in self._screen.display if line.strip()]

    def expect(self, text: str) -> str:
        """Wait for output with this text after the previously expected one, and return the output up to its end."""
        try:
            self._child.expect_exact(text)
        except (pexpect.EOF, pexpect.TIMEOUT) as error:
            raise AssertionError(f"{text!r} did not appear; the output:\n{self.output}") from error
        return f"{self._child.before}{self._child.after}"

    def wait_for(self, *lines: str, times: int = 1) -> None:
        """Wait until these are the last lines on the screen, or until one line appears `times` times."""
        if times == 1:
            self._read_until(lambda: self.lines[-len(lines) :] == list(lines), f"{lines} at the end")
        else:
            self._read_until(lambda: self.lines.count(lines[0]) >= times, f"{lines[0]!r} {times} times")

    def wait_for_line(self, begin: str) -> str:
        """Wait for a line on the screen that starts with this text, and return it."""
        self._read_until(lambda: any(line.startswith(begin) for line in self.lines), repr(begin))
        return [line for line in self.lines if line.startswith(begin)][-1]

    def _read_until(self, condition: Callable[[], bool], wanted: str) -> None:
        deadline = time.monotonic() + self._patience
        while not condition():
            has_more = self._read(deadline)
            assert has_more or condition(), f"{wanted} did not appear; the screen:\n" + "\n".join(self.lines)

    def _read(self, deadline: float) -> bool:
        """Read more output. Return False when no process has the terminal open, or at the deadline."""
        try:
            self._child.read_nonblocking(READ_SIZE, max(deadline - time.monotonic(), 0))
        except (pexpect.EOF, pexpect.TIMEOUT):
            return False
        return True

    # The end

    def finish(self) -> int:
        """Read to the end of the output and return the exit code, negative for a signal."""
        deadline = time.monotonic() + self._patience
        while self._read(deadline):
            pass
        return self.wait()

    def wait(self) -> int:
        """Wait for the end of the program without reading, and return the exit code, negative for a signal."""
        deadline = time.monotonic() + self._patience
        while self._child.isalive():
            assert time.monotonic() < deadline, "the program does not end; the screen:\n" + "\n".join(self.lines)
            time.sleep(0.01)
        code = self._child.exitstatus
        return -self._child.signalstatus if code is None else code

    def wait_for_exit(self, code: int) -> list[str]:
        """Wait for this exit code, check that the terminal is restored, and return the lines on the screen."""
        ended = self.finish()
        assert ended == code, self.lines
        assert self.is_restored, "the terminal mode was not restored"
        return self.lines

    def wait_until_restored(self) -> None:
        """Wait until another process has restored the terminal mode."""
        deadline = time.monotonic() + self._patience
        while not self.is_restored:
            assert time.monotonic() < deadline, "the terminal mode was not restored"
            time.sleep(0.01)

    @property
    def is_restored(self) -> bool:
        """Whether the attributes of the terminal are those of a new one."""
        return termios.tcgetattr(self._child.child_fd) == self._initial_attributes


def _restore_signals() -> None:
    """Make the program independent of signals that the test process ignores, as below `nohup`."""
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
        signal.signal(number, signal.SIG_DFL)


def default_attributes() -> list[Any]:
    """Return the attributes of a new terminal."""
    ours, theirs = pty.openpty()
    try:
        return termios.tcgetattr(theirs)
    finally:
        os.close(ours)
        os.close(theirs)
