"""Running a program to the end for what it prints: the agents' own commands for plugins, models, installation.

Blocking and bounded: in a process group of its own, of which nothing lives on. No shell, nothing on standard input but
what is given. It prints into files, not pipes: nothing has to be read meanwhile, and nobody who is left behind with an
open pipe keeps us waiting.
"""

import contextlib
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from agent_mux.errors import AgentMuxError
from agent_mux.process.spawn_errors import SpawnAttempt, explain_spawn_failure

LOOK_EVERY = 0.1  # seconds between asking whether the answer is wanted still
KILL_AFTER = 2.0  # seconds between asking a group to leave and killing it
MAX_ERROR_LINE = 300  # characters
MOST_OUTPUT = 32 << 20  # bytes of one stream that are kept
_STDERR = 2  # the descriptor: whatever Python has made of it


@dataclass(frozen=True, slots=True)
class ProgramResult:
    """What a program said."""

    argv: tuple[str, ...]
    exit_code: int
    """Negative: the signal that ended it."""
    stdout: str
    stderr: str

    @property
    def error_line(self) -> str:
        """Its last words, for an error: on standard error, else on standard output."""
        said = [line.strip() for line in (self.stderr.strip() or self.stdout.strip()).splitlines() if line.strip()]
        return said[-1][:MAX_ERROR_LINE] if said else "it says nothing about it"


def run_program(  # noqa: PLR0913  # all but three have a default
    argv: Sequence[str],
    *,
    environ: Mapping[str, str],
    timeout: float,
    cwd: str | os.PathLike[str] | None = None,
    stdin: bytes = b"",
    show_output: bool = False,
    is_wanted: Callable[[], bool] | None = None,
) -> ProgramResult:
    """Run a program and wait for its end.

    Args:
        argv: Absolute path of the program, and its arguments.
        environ: All of its environment.
        timeout: Seconds.
        cwd: Where it runs; default: here.
        stdin: Bytes for its standard input.
        show_output: What it prints goes to our standard error as it comes, and not into the answer.
        is_wanted: Asked meanwhile; once it says no, the program is ended.

    Raises:
        AgentMuxError: SPAWN_ERROR when it cannot be started, TIMEOUT when it takes longer, ABORTED when nobody
            wants it any more.
    """
    with tempfile.TemporaryFile() as into, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
        into.write(stdin)
        into.seek(0)
        streams = (into, *((_STDERR, _STDERR) if show_output else (out, errors)))
        code = _exit_code(_started(argv, environ, cwd, streams), timeout, is_wanted)
        if code is None:
            asked = " ".join((Path(argv[0]).name, *argv[1:]))
            if is_wanted is not None and not is_wanted():
                raise AgentMuxError("ABORTED", f"`{asked}` was stopped: nobody waits for it any more")
            raise AgentMuxError("TIMEOUT", f"`{asked}` did not end within {timeout:g} s; it was stopped")
        return ProgramResult(tuple(argv), code, _text(out), _text(errors))


def _started(
    argv: Sequence[str],
    environ: Mapping[str, str],
    cwd: str | os.PathLike[str] | None,
    streams: Sequence[IO[bytes] | int],
) -> subprocess.Popen[bytes]:
    stdin, stdout, stderr = streams
    try:
        return subprocess.Popen(
            argv, stdin=stdin, stdout=stdout, stderr=stderr, cwd=cwd, env=dict(environ), start_new_session=True
        )
    except OSError as error:
        reason = explain_spawn_failure(error, SpawnAttempt(argv=argv, environ=environ, cwd=str(cwd or Path.cwd())))
        raise AgentMuxError("SPAWN_ERROR", f"{argv[0]} could not be started: {reason}") from error


def _exit_code(process: subprocess.Popen[bytes], timeout: float, is_wanted: Callable[[], bool] | None) -> int | None:
    """None: it took too long, or nobody wants it, and it was ended."""
    try:
        return process.wait(timeout) if is_wanted is None else _wait(process, timeout, is_wanted)
    except subprocess.TimeoutExpired:
        _signal_group(process, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(KILL_AFTER)
        return None
    finally:
        _signal_group(process, signal.SIGKILL)  # also what it left behind
        process.wait()


def _wait(process: subprocess.Popen[bytes], timeout: float, is_wanted: Callable[[], bool]) -> int:
    end = time.monotonic() + timeout
    while True:
        left = end - time.monotonic()
        try:
            return process.wait(max(0, min(LOOK_EVERY, left)))
        except subprocess.TimeoutExpired:
            if left <= LOOK_EVERY or not is_wanted():
                raise


def _signal_group(process: subprocess.Popen[bytes], number: int) -> None:
    # macOS says that it is not permitted for a group of which only zombies are left.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read(MOST_OUTPUT).decode("utf-8", "replace")
