"""Running a program to its end for its output: the agents' own commands for plugins, models and installation.

Calls block and are bounded. The program runs without a shell in its own process group, of which no process is left
running. It prints into files instead of pipes: nothing has to be read meanwhile, and a process that was left behind
with an open pipe cannot block the call.
"""

import contextlib
import itertools
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Literal

import msgspec

from agent_mux.errors import AgentMuxError
from agent_mux.process.spawn_errors import SpawnAttempt, explain_spawn_failure

POLL_INTERVAL = 0.1  # seconds between two calls of `is_wanted`
KILL_AFTER = 2.0  # seconds from SIGTERM to SIGKILL
MAX_ERROR_LINE = 300  # characters of `ProgramResult.error_line`
MAX_OUTPUT = 32 << 20  # bytes kept of each stream
_RUST_STACK = "stack backtrace:"
_STDERR = 2  # the descriptor, even if `sys.stderr` was replaced


class ProgramResult(msgspec.Struct, frozen=True):
    """The exit code and the output of a program that ended."""

    argv: tuple[str, ...]
    exit_code: int
    """Negative: the number of the signal that ended the program."""
    stdout: str
    stderr: str

    @property
    def error_line(self) -> str:
        """The last line of standard error, else of standard output, for use in an error message."""
        return last_line(self.stderr.strip() or self.stdout)


def last_line(text: str) -> str:
    """Return the last line of a program's output that is not blank, for use in an error message.

    The stack of a Rust program (`RUST_BACKTRACE`), which follows the error, is skipped.
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    lines = list(itertools.takewhile(lambda line: line.lower() != _RUST_STACK, lines))
    return lines[-1][:MAX_ERROR_LINE] if lines else "it printed no error message"


def run_program(  # noqa: PLR0913  # all but three have a default
    argv: Sequence[str],
    *,
    environ: Mapping[str, str],
    timeout: float,
    cwd: str | os.PathLike[str] | None = None,
    stdin: bytes = b"",
    show_output: bool = False,
    is_wanted: Callable[[], bool] | None = None,
    errors: Literal["replace", "surrogateescape"] = "replace",
) -> ProgramResult:
    """Run a program and wait for its end.

    Args:
        argv: Absolute path of the program, and its arguments.
        environ: The complete environment of the program.
        timeout: Seconds until the program is ended.
        cwd: Working directory; default: the current one.
        stdin: Bytes for its standard input.
        show_output: Whether to print its output to our standard error instead of returning it.
        is_wanted: Polled while the program runs; the program is ended once it returns False.
        errors: How bytes of the output that are no UTF-8 are decoded.

    Raises:
        AgentMuxError: SPAWN_ERROR if the program cannot be started, TIMEOUT if it takes longer, ABORTED if `is_wanted`
            returned False.
    """
    with (
        tempfile.TemporaryFile() as standard_input,
        tempfile.TemporaryFile() as out,
        tempfile.TemporaryFile() as error_output,
    ):
        standard_input.write(stdin)
        standard_input.seek(0)
        streams = (standard_input, *((_STDERR, _STDERR) if show_output else (out, error_output)))
        code = _wait_for_exit(spawn_blocking(argv, environ, cwd, streams), timeout, is_wanted)
        if code is None:
            command = " ".join((Path(argv[0]).name, *argv[1:]))
            if is_wanted is not None and not is_wanted():
                raise AgentMuxError("ABORTED", f"`{command}` was stopped: its result is no longer wanted")
            raise AgentMuxError("TIMEOUT", f"`{command}` did not end within {timeout:g} s; it was stopped")
        return ProgramResult(tuple(argv), code, _text(out, errors), _text(error_output, "replace"))


def spawn_blocking(
    argv: Sequence[str],
    environ: Mapping[str, str],
    cwd: str | os.PathLike[str] | None,
    streams: Sequence[IO[bytes] | int],
) -> subprocess.Popen[bytes]:
    """Start a program in its own process group with these standard streams. Raises SPAWN_ERROR."""
    stdin, stdout, stderr = streams
    try:
        return subprocess.Popen(
            argv, stdin=stdin, stdout=stdout, stderr=stderr, cwd=cwd, env=dict(environ), start_new_session=True
        )
    except OSError as error:
        reason = explain_spawn_failure(error, SpawnAttempt(argv=argv, environ=environ, cwd=str(cwd or Path.cwd())))
        raise AgentMuxError("SPAWN_ERROR", f"{argv[0]} could not be started: {reason}") from error


def _wait_for_exit(
    process: subprocess.Popen[bytes], timeout: float, is_wanted: Callable[[], bool] | None
) -> int | None:
    """Return the exit code; None if the program was ended because of the timeout or `is_wanted`."""
    try:
        return process.wait(timeout) if is_wanted is None else _poll_until_exit(process, timeout, is_wanted)
    except subprocess.TimeoutExpired:
        signal_group(process)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(KILL_AFTER)
        return None
    finally:
        kill_group(process)


def _poll_until_exit(process: subprocess.Popen[bytes], timeout: float, is_wanted: Callable[[], bool]) -> int:
    end = time.monotonic() + timeout
    while True:
        remaining = end - time.monotonic()
        try:
            return process.wait(max(0, min(POLL_INTERVAL, remaining)))
        except subprocess.TimeoutExpired:
            if remaining <= POLL_INTERVAL or not is_wanted():
                raise


def kill_group(process: subprocess.Popen[bytes]) -> None:
    """Kill a program and what it left running in its process group."""
    signal_group(process, signal.SIGKILL)
    process.wait()


def signal_group(process: subprocess.Popen[bytes], number: int = signal.SIGTERM) -> None:
    """Send a signal to a program and its process group."""
    # macOS raises PermissionError for a group that has only zombies left.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


def _text(file: IO[bytes], errors: str) -> str:
    file.seek(0)
    return file.read(MAX_OUTPUT).decode("utf-8", errors)
