"""A process that outlives the line editor by a moment, to give the terminal back when its user was killed.

It holds the terminal as its standard output, and reads the attributes that the terminal had, one number or hexadecimal
text a line, from its standard input, a pipe whose other end only the client holds. When that end closes without a last
line `done`, the client did not tidy up. A shell that has the terminal by then, and has made it its own, is left alone.

Started as a script in an isolated interpreter without site-packages, so it costs little.
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
    """Wait for the client to go away, then see whether it left the terminal as it was."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGTTOU):
        signal.signal(number, signal.SIG_IGN)
    told = sys.stdin.read().split("\n")
    if DONE in told:
        return
    terminal = sys.stdout.fileno()
    with suppress(OSError, termios.error):  # it is gone, too
        if _is_raw(termios.tcgetattr(terminal)):
            termios.tcsetattr(terminal, termios.TCSANOW, _parse_attributes(told))
            os.write(terminal, _RESET_TERMINAL)


def _is_raw(attributes: list[Any]) -> bool:
    """As the line editor has it. A shell leaves the keys that make signals alone."""
    return not attributes[_LFLAG] & (termios.ICANON | termios.ISIG)


def _parse_attributes(told: list[str]) -> list[Any]:
    numbers, characters = told[:6], told[6:]
    return [*map(int, numbers), [bytes.fromhex(character) for character in characters if character]]


class TerminalGuard:
    """The client's end."""

    def __init__(self, terminal: int, attributes: list[Any]) -> None:
        """Watch a terminal, which had these attributes (as of `tcgetattr`) before it was taken."""
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", __file__],
            stdin=subprocess.PIPE,
            stdout=terminal,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            cwd="/",
        )
        *numbers, characters = attributes
        told = [str(number) for number in numbers]
        told += [(bytes([one]) if isinstance(one, int) else one).hex() for one in characters]
        self._write("\n".join(told) + "\n")

    def dismiss(self) -> None:
        """The terminal is as it was."""
        self._write(DONE + "\n")
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process.wait()

    def _write(self, text: str) -> None:
        if self._process.stdin is not None:
            with suppress(BrokenPipeError):  # somebody killed it
                os.write(self._process.stdin.fileno(), text.encode())


if __name__ == "__main__":
    main()
