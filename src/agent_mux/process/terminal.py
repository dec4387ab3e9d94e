"""A child process at a terminal of its own: for programs that are made for people."""

import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from agent_mux.errors import AgentMuxError
from agent_mux.process.child import Child, SpawnedProcess, restore_default_signals
from agent_mux.process.marker import mark
from agent_mux.sdk.codec import TerminalSize

END_OF_FILE = b"\x04"
"""What a person types to say that nothing more will come."""


class TerminalChild(Child):
    """A program whose standard input, output and error are one terminal."""

    def __init__(self, started: SpawnedProcess, run_id: str, terminal: int) -> None:
        super().__init__(started, run_id, stdin=terminal, stdout=terminal, stderr=None)

    async def read_stderr(self, take: Callable[[bytes], None]) -> None:
        """There is none: it comes with the output."""

    def resize(self, size: TerminalSize) -> None:
        """The terminal has another size now; the program is told."""
        if self._stdout is not None:
            _resize(self._stdout, size)

    def close_stdin(self) -> None:
        """Type the end of the input; there is no other way to close half a terminal."""
        terminal, self._stdin = self._stdin, None
        if terminal is not None and self.returncode is None:
            try:
                os.write(terminal, END_OF_FILE)
            except OSError:
                return  # it reads no more, or is gone: then it needs no telling


def spawn_at_terminal(
    argv: Sequence[str], *, run_id: str, env: Mapping[str, str], cwd: str, size: TerminalSize
) -> TerminalChild:
    """Start a program. Raises `OSError` when the system cannot; nothing is left open then.

    Raises PTY_NOT_AVAILABLE where there are no terminals.
    """
    try:
        terminal, inner = os.openpty()
    except AttributeError as error:
        raise AgentMuxError("PTY_NOT_AVAILABLE", "this system has no terminals for programs") from error
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
            preexec_fn=partial(_take_terminal, run_id),  # noqa: PLW1509  # it takes no lock
        )
    except BaseException:
        os.close(terminal)
        raise
    finally:
        os.close(inner)
    os.set_blocking(terminal, False)
    return TerminalChild(popen, run_id, terminal)


def _take_terminal(run_id: str) -> None:
    """In the child, before its program begins: its standard input is the terminal of its session."""
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
