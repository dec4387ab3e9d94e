"""The client's side of the reaper process (`reaper_process.py`), which ends the runs of a client that was killed."""

import os
import select
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PROGRAM = Path(__file__).with_name("reaper_process.py")
REAPER_TIMEOUT = 2.0  # seconds for the reaper to start, and to end
POLL_INTERVAL = 0.001  # seconds between two checks whether the reaper is ready

_ahead: "dict[int, subprocess.Popen[bytes]]" = {}
"""The reaper that has no client yet, if any, by the id of the process that started it: a fork must not use it."""


@contextmanager
def reaper_started_ahead() -> Iterator[None]:
    """Start a reaper now, for the first client that needs one in the block, so that its agent does not wait for it."""
    pid = os.getpid()
    with suppress(OSError):  # the run that needs a reaper tries again, and reports the failure
        _ahead[pid] = _start_process()
    try:
        yield
    finally:
        unused = _ahead.pop(pid, None)
        if unused is not None:
            _end_process(unused)


def _start_process() -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [sys.executable, "-I", "-S", str(PROGRAM), str(os.getpid())],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        cwd="/",
    )


def _end_process(process: "subprocess.Popen[bytes]") -> None:
    """End a reaper without runs. It has nothing left to do, and its interpreter would take a while to exit."""
    process.kill()
    process.communicate()


class Reaper:
    """The connection to the reaper process. Starts it with the first run, and again if it was killed."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._client_pid = 0
        """Process id of the client that started the reaper: a fork of the client has a copy of this object."""
        self._runs: dict[str, list[str]] = {}
        """The lines, one or two, with which each active run is registered, by run id."""
        self._is_ready = False

    def watch(self, run_id: str, temp_dir: Path | None = None) -> None:
        """Register a run, whose processes the reaper ends if the client dies, and whose directory it then removes.

        Raises `OSError` if no reaper can be started.
        """
        if self._process is None or self._process.poll() is not None:
            self._start()
        self._runs[run_id] = [f"+{run_id} {temp_dir or ''}"]
        self._write(*self._runs[run_id])

    async def wait_until_ready(self) -> None:
        """Wait up to 2 seconds for a new reaper: a process that starts before the reaper is ready could escape it."""
        import anyio  # noqa: PLC0415  # a reaper is started ahead of imports that take long

        with anyio.move_on_after(REAPER_TIMEOUT):
            while not self._check_ready():  # noqa: ASYNC110  # several runs wait for one byte in a pipe
                await anyio.sleep(POLL_INTERVAL)

    def block_until_ready(self) -> None:
        """Like `wait_until_ready`, for threads without an event loop."""
        self._check_ready(REAPER_TIMEOUT)

    def _check_ready(self, timeout: float = 0) -> bool:
        process = self._process
        if process is None or process.stdout is None:
            return True  # it has ended: do not wait for it
        if not self._is_ready:
            poll = select.poll()
            poll.register(process.stdout)
            self._is_ready = bool(poll.poll(timeout * 1000))
        return self._is_ready

    def register_leader(self, run_id: str, pid: int, started: int) -> None:
        """Register the first process of a run, by id and start time (0: unknown).

        Each attempt replaces the one before.
        """
        if run_id in self._runs:
            self._runs[run_id][1:] = [f"={run_id} {pid} {started}"]
            self._write(self._runs[run_id][1])

    def unregister(self, run_id: str) -> None:
        """Unregister a run of which no process and no file is left."""
        if self._runs.pop(run_id, None) is not None:
            self._write(f"-{run_id}")

    def close(self) -> None:
        """Stop the reaper when the client ends in order: no run is left."""
        process = self._process
        if process is not None and self._client_pid == os.getpid():
            self._process, self._is_ready = None, False
            _end_process(process)

    def _start(self) -> None:
        self._disconnect()
        self._client_pid = os.getpid()
        self._process = _ahead.pop(self._client_pid, None) or _start_process()
        assert self._process.stdin is not None  # noqa: S101  # it is a pipe
        os.set_blocking(self._process.stdin.fileno(), False)
        for lines in self._runs.values():
            self._write(*lines)

    def _write(self, *lines: str) -> None:
        process = self._process
        if process is None or process.stdin is None or self._client_pid != os.getpid():
            return
        try:
            for line in lines:
                os.write(process.stdin.fileno(), os.fsencode(line) + b"\n")
        except (BrokenPipeError, BlockingIOError):
            self._disconnect()  # it was killed or stopped; the next run starts another reaper

    def _disconnect(self) -> None:
        process, self._process = self._process, None
        self._is_ready = False
        if process is None or process.stdin is None or process.stdout is None:
            return
        process.stdin.close()
        process.stdout.close()
        if self._client_pid == os.getpid():
            try:
                process.wait(REAPER_TIMEOUT)
            except subprocess.TimeoutExpired:  # the reaper is stopped (SIGSTOP)
                process.kill()
                process.wait()
