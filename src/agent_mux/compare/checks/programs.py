"""Run an untrusted program: bounded in time and memory, and none of its processes is left running.

The program and everything that it starts carry a mark (`process.marker`), so that also daemons are ended: what holds
the output open, ignores SIGTERM, or has left its process group.
"""

import contextlib
import os
import secrets
import select
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from agent_mux.compare.checks.orphans import ended_with_client, register_leader
from agent_mux.errors import AgentMuxError
from agent_mux.process.marker import ProcessIdentity, identify, kill_processes_of, mark, marker_variable
from agent_mux.process.spawn_errors import SpawnAttempt, explain_spawn_failure
from agent_mux.worktrees.git import REPOSITORY_VARIABLES

MAX_TAIL = 16 << 10  # bytes of output that are kept, the last ones
KILL_AFTER = 2.0  # seconds from SIGTERM to SIGKILL
_POLL_INTERVAL = 0.05  # seconds until an exit is noticed while another process holds the output open
_READ_SIZE = 1 << 16


@dataclass(frozen=True, slots=True)
class BoundedRun:
    """The end of a program."""

    exit_code: int | None
    """Negative: the number of the signal that ended it. None: it was ended after its time limit."""
    output: bytes
    """The last 16 KiB of standard output and standard error."""
    duration: float
    """Seconds."""
    leftover: int
    """Number of processes that it left running, and that were ended."""


def run_bounded(  # noqa: PLR0913  # most have a default
    argv: Sequence[str],
    *,
    cwd: Path,
    environ: Mapping[str, str],
    timeout: float,
    stdin: bytes = b"",
    is_wanted: Callable[[], bool] = lambda: True,
) -> BoundedRun:
    """Run a program and wait for its end. Blocking.

    Args:
        argv: Absolute path of the program, and its arguments.
        cwd: Working directory.
        environ: The complete environment.
        timeout: Seconds until the program is ended.
        stdin: Bytes for its standard input.
        is_wanted: Polled while the program runs; it is ended once this returns False.

    Raises:
        AgentMuxError: SPAWN_ERROR if the program cannot be started, ABORTED once `is_wanted` returns False.
    """
    marker = secrets.token_hex(16)
    with ended_with_client(marker):
        return _run_marked(marker, argv, cwd, environ, timeout, stdin, is_wanted)


def _run_marked(  # noqa: PLR0913, PLR0917  # those of run_bounded
    marker: str,
    argv: Sequence[str],
    cwd: Path,
    environ: Mapping[str, str],
    timeout: float,
    stdin: bytes,
    is_wanted: Callable[[], bool],
) -> BoundedRun:
    reader, writer = os.pipe()
    try:
        began = time.monotonic()
        process = _spawn(argv, cwd, {**environ, marker_variable(marker): "1"}, stdin, writer)
        mark(process.pid, marker)
        leader = identify(process.pid)
        register_leader(marker, process.pid, leader)
        output = _Tail(reader)
        leftover = 0
        try:
            is_over = _wait(process, output, began + timeout, is_wanted)
            if not is_over:
                _signal_group(process, signal.SIGTERM)
                _wait(process, output, time.monotonic() + KILL_AFTER, lambda: True)
        finally:
            leftover = _end_all(process, marker, leader)
        output.drain()
    finally:
        os.close(reader)
    if not is_over and not is_wanted():
        raise AgentMuxError("ABORTED", f"`{Path(argv[0]).name}` was stopped: its result is no longer wanted")
    code = process.returncode if is_over else None
    return BoundedRun(code, output.content, time.monotonic() - began, leftover)


@contextlib.contextmanager
def check_environment(environ: Mapping[str, str], parent: Path | None = None) -> Iterator[dict[str, str]]:
    """Provide the environment of one check: the given one, without a selected repository, with its own TMPDIR.

    The directory is created in `parent` (default: the directory for temporary files) and removed afterwards. Python
    writes no bytecode, because a later check of the same files would read it.
    """
    directory = tempfile.mkdtemp(prefix="agent-mux-check-", dir=parent)
    try:
        kept = {name: value for name, value in environ.items() if name not in REPOSITORY_VARIABLES}
        yield {**kept, **dict.fromkeys(("TMPDIR", "TEMP", "TMP"), directory), "PYTHONDONTWRITEBYTECODE": "1"}
    finally:
        shutil.rmtree(directory, ignore_errors=True)


class _Tail:
    """The end of what is written into a pipe."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._kept = bytearray()
        self.is_open = True
        self._poll = select.poll()
        self._poll.register(descriptor, select.POLLIN)
        os.set_blocking(descriptor, False)

    @property
    def content(self) -> bytes:
        return bytes(self._kept[-MAX_TAIL:])

    def wait_and_read(self, timeout: float) -> None:
        """Wait for output up to the timeout in seconds, and read what is there, at most 64 KiB."""
        if self._poll.poll(timeout * 1000):
            self._read()

    def drain(self) -> None:
        """Read what is in the pipe. No process is left that writes into it, or it is cut off."""
        for _ in range(64):  # a pipe holds at most 1 MiB
            if not self.is_open or not self._read():
                return

    def _read(self) -> bool:
        try:
            part = os.read(self._descriptor, _READ_SIZE)
        except BlockingIOError:
            return False
        self.is_open = bool(part)
        self._kept += part
        if len(self._kept) > 8 * MAX_TAIL:
            del self._kept[:-MAX_TAIL]
        return bool(part)


def _spawn(
    argv: Sequence[str], cwd: Path, environ: Mapping[str, str], stdin: bytes, writer: int
) -> subprocess.Popen[bytes]:
    """Start the program; closes our end of its output."""
    try:
        with tempfile.TemporaryFile() as standard_input:
            standard_input.write(stdin)
            standard_input.seek(0)
            return subprocess.Popen(
                argv,
                stdin=standard_input,
                stdout=writer,
                stderr=writer,
                cwd=cwd,
                env=dict(environ),
                start_new_session=True,
            )
    except OSError as error:
        reason = explain_spawn_failure(error, SpawnAttempt(argv=argv, environ=environ, cwd=str(cwd)))
        raise AgentMuxError("SPAWN_ERROR", f"{argv[0]} could not be started: {reason}") from error
    finally:
        os.close(writer)


def _wait(process: subprocess.Popen[bytes], output: _Tail, end: float, is_wanted: Callable[[], bool]) -> bool:
    """Read output until the program ends. Return False if it has not ended in time or is no longer wanted."""
    while process.poll() is None:
        remaining = end - time.monotonic()
        if remaining <= 0 or not is_wanted():
            return False
        if output.is_open:
            output.wait_and_read(min(_POLL_INTERVAL, remaining))
        else:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(min(_POLL_INTERVAL, remaining))
    return True


def _end_all(process: subprocess.Popen[bytes], marker: str, leader: ProcessIdentity | None) -> int:
    """End the program and all that it started. Return how many processes it had left running."""
    was_running = process.poll() is None
    signalled = kill_processes_of(marker, signal.SIGKILL, leader)
    _signal_group(process, signal.SIGKILL)  # all that can be done without /proc
    process.wait()
    return max(0, signalled - was_running)


def _signal_group(process: subprocess.Popen[bytes], number: int) -> None:
    # macOS raises PermissionError for a group that has only zombies left.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)
