"""A helper process that restores the terminal if the process of the line editor is killed.

Its standard output is the terminal. From standard input, a pipe that only the client holds open, it reads the
terminal's original attributes, one number or hexadecimal text per line. If the pipe closes without a last line `done`,
the client did not restore the terminal. A terminal that a shell has already taken over is left alone.

It runs as a script in an isolated interpreter without site-packages, so that it starts quickly.
"""

import os
import signal
import subprocess
import sys
import termios
from contextlib import suppress
from typing import Any

DONE = "done"
_LFLAG = 3
_RESET_TERMINAL = b"\x1b[0m\x1b[?25h\x1b[?7h\x1b[?2004l\r\n"


def main() -> None:
    """Wait for the client to exit, then restore the terminal if the client did not."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGTTOU):
        signal.signal(number, signal.SIG_IGN)
    lines = sys.stdin.read().split("\n")
    if DONE in lines:
        return
    terminal = sys.stdout.fileno()
    with suppress(OSError, termios.error):  # the terminal is gone, too
        if _is_raw(termios.tcgetattr(terminal)):
            termios.tcsetattr(terminal, termios.TCSANOW, _parse_attributes(lines))
            os.write(terminal, _RESET_TERMINAL)


def _is_raw(attributes: list[Any]) -> bool:
    """Return whether the attributes are those of the line editor. A shell keeps the keys that send signals."""
    return not attributes[_LFLAG] & (termios.ICANON | termios.ISIG)


def _parse_attributes(lines: list[str]) -> list[Any]:
    numbers, characters = lines[:6], lines[6:]
    return [*map(int, numbers), [bytes.fromhex(character) for character in characters if character]]


class TerminalGuard:
    """The client's side of the helper process."""

    def __init__(self, terminal: int, attributes: list[Any]) -> None:
        """Watch a terminal; `attributes` (from `tcgetattr`) are its original ones."""
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", __file__],
            stdin=subprocess.PIPE,
            stdout=terminal,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            cwd="/",
        )
        *numbers, characters = attributes
        lines = [str(number) for number in numbers]
        lines += [(bytes([one]) if isinstance(one, int) else one).hex() for one in characters]
        self._write("\n".join(lines) + "\n")

    def dismiss(self) -> None:
        """Stop the helper: the terminal is restored."""
        self._write(DONE + "\n")
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process.wait()

    def _write(self, text: str) -> None:
        if self._process.stdin is not None:
            with suppress(BrokenPipeError):  # the helper was killed
                os.write(self._process.stdin.fileno(), text.encode())


if __name__ == "__main__":
    main()
