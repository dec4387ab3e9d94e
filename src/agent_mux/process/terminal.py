"""A child process at a terminal of its own: for programs that are made for people."""

import errno
import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from agent_mux.adapter import TerminalSize
from agent_mux.errors import AgentMuxError
from agent_mux.process.child import Child

if TYPE_CHECKING:
    from ptyprocess import PtyProcess

END_OF_FILE = b"\x04"
"""What a person types to say that nothing more will come."""


class TerminalChild(Child):
    """A program whose standard input, output and error are one terminal."""

    def __init__(self, process: "PtyProcess", run_id: str, terminal: int) -> None:
        super().__init__(_Started(process), run_id, stdin=terminal, stdout=terminal, stderr=None)

    async def read_stderr(self, take: Callable[[bytes], None]) -> None:
        """There is none: it comes with the output."""

    def resize(self, size: TerminalSize) -> None:
        """The terminal has another size now; the program is told."""
        import fcntl  # noqa: PLC0415  # not on every platform
        import struct  # noqa: PLC0415
        import termios  # noqa: PLC0415

        if self._stdout is not None:
            fcntl.ioctl(self._stdout, termios.TIOCSWINSZ, struct.pack("HHHH", size.rows, size.columns, 0, 0))

    def close_stdin(self) -> None:
        """Type the end of the input; there is no other way to close half a terminal."""
        terminal, self._stdin = self._stdin, None
        if terminal is not None and self.returncode is None:
            try:
                os.write(terminal, END_OF_FILE)
            except OSError:
                return  # it reads no more, or is gone: then it needs no telling


class _Started:
    """What `Child` wants of a `subprocess.Popen`."""

    def __init__(self, process: "PtyProcess") -> None:
        self._process = process
        self.pid: int = process.pid

    def poll(self) -> int | None:
        return None if self._process.isalive() else self._code()

    def wait(self) -> int:
        if self._process.isalive():
            self._process.wait()
        return self._code()

    def _code(self) -> int:
        signal = self._process.signalstatus
        return int(self._process.exitstatus or 0) if signal is None else -int(signal)


def start_at_terminal(
    argv: Sequence[str], *, run_id: str, env: Mapping[str, str], cwd: str, size: TerminalSize
) -> TerminalChild:
    """Start a program at a terminal. Raises `OSError` when the system cannot, PTY_NOT_AVAILABLE without ptyprocess."""
    try:
        from ptyprocess import PtyProcess  # noqa: PLC0415  # an extra
        from ptyprocess.ptyprocess import PtyProcessError  # noqa: PLC0415
    except ImportError as error:
        missing = "a terminal for the agent needs ptyprocess and pyte: pip install 'agent-mux[terminal]'"
        raise AgentMuxError("PTY_NOT_AVAILABLE", missing) from error
    try:
        process = PtyProcess.spawn(list(argv), cwd=cwd, env=dict(env), dimensions=(size.rows, size.columns))
    except PtyProcessError as error:
        raise OSError(errno.EAGAIN, str(error)) from error
    # The library closes what it thinks is its own, some time: this descriptor is ours.
    terminal = os.dup(process.fd)
    process.fileobj.close()
    process.closed, process.fd = True, -1
    os.set_blocking(terminal, False)
    return TerminalChild(process, run_id, terminal)
