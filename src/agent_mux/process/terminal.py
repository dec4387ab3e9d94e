"""A child process at its own pseudo-terminal, for interactive programs."""

import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from agent_mux.errors import AgentMuxError
from agent_mux.process.child import Child, SpawnedProcess, restore_default_signals
from agent_mux.process.marker import mark
from agent_mux.sdk.codec import TerminalSize

END_OF_FILE = b"\x04"
"""The character (Ctrl-D) with which a person ends the input at a terminal."""


class TerminalChild(Child):
    """A program whose standard input, output and error are one terminal."""

    def __init__(self, popen: SpawnedProcess, run_id: str, terminal: int) -> None:
        super().__init__(popen, run_id, stdin=terminal, stdout=terminal, stderr=None)

    async def read_stderr(self, on_chunk: Callable[[bytes], None]) -> None:
        """Return at once: a terminal has no separate standard error."""

    def resize(self, size: TerminalSize) -> None:
        """Set the size of the terminal; the system notifies the program with SIGWINCH."""
        if self._stdout is not None:
            _resize(self._stdout, size)

    def close_stdin(self) -> None:
        """Send the end-of-file character: half of a terminal cannot be closed."""
        terminal, self._stdin = self._stdin, None
        if terminal is not None and self.returncode is None:
            try:
                os.write(terminal, END_OF_FILE)
            except OSError:
                return  # the program closed the terminal or has ended


def spawn_at_terminal(
    argv: Sequence[str], *, run_id: str, env: Mapping[str, str], cwd: str, size: TerminalSize
) -> TerminalChild:
    """Spawn a program at a new terminal, with all descriptors closed on failure.

    Raises `OSError` if the system refuses, PTY_NOT_AVAILABLE if it has no pseudo-terminals.
    """
    try:
        terminal, inner = os.openpty()
    except AttributeError as error:
        raise AgentMuxError("PTY_NOT_AVAILABLE", "this system has no pseudo-terminals") from error
    try:
        _resize(terminal, size)
        popen = subprocess.Popen(
            list(argv),
            stdin=inner,
            stdout=inner,
            stderr=inner,
            env=dict(env),
            cwd=cwd,
            start_new_session=True,
            restore_signals=True,
            preexec_fn=partial(_acquire_terminal, run_id),  # noqa: PLW1509  # it takes no lock
        )
    except BaseException:
        os.close(terminal)
        raise
    finally:
        os.close(inner)
    os.set_blocking(terminal, False)
    return TerminalChild(popen, run_id, terminal)


def _acquire_terminal(run_id: str) -> None:
    """Mark the child, and make its standard input the terminal of its session.

    Called before its program is executed.
    """
    import fcntl  # noqa: PLC0415  # not on every platform
    import termios  # noqa: PLC0415

    mark(os.getpid(), run_id)
    restore_default_signals()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def _resize(terminal: int, size: TerminalSize) -> None:
    import fcntl  # noqa: PLC0415  # not on every platform
    import struct  # noqa: PLC0415
    import termios  # noqa: PLC0415

    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", size.rows, size.columns, 0, 0))
