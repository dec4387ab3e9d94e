"""The client's end of the reaper, which ends its runs when it is killed: see `reaper_process.py`."""

import os
import select
import subprocess
import sys
from pathlib import Path

import anyio

PROGRAM = Path(__file__).with_name("reaper_process.py")
REAPER_TIMEOUT = 2.0  # seconds for the reaper to come, and to leave
LOOK_EVERY = 0.001  # seconds between two looks whether it came


class Reaper:
    """The client's end of the reaper. Starts it with the first run, and again when somebody killed it."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._client = 0
        """Whose it is: a fork of the client has a copy of this object."""
        self._runs: dict[str, list[str]] = {}
        """Those that are alive, and how they are registered: one line or two."""
        self._is_ready = False

    def watch(self, run_id: str, temp_dir: Path) -> None:
        """End this run's processes if the client dies. Raises `OSError` when no reaper can be started."""
        if self._process is None or self._process.poll() is not None:
            self._start()
        self._runs[run_id] = [f"+{run_id} {temp_dir}"]
        self._write(*self._runs[run_id])

    async def wait_until_ready(self) -> None:
        """Wait for a reaper that was just started, 2 seconds at most: what begins before it works could escape."""
        with anyio.move_on_after(REAPER_TIMEOUT):
            while not self._is_at_work():  # noqa: ASYNC110  # it tells with a byte, which several runs wait for
                await anyio.sleep(LOOK_EVERY)

    def _is_at_work(self) -> bool:
        process = self._process
        if process is None or process.stdout is None:
            return True  # it is gone: nothing can be waited for
        if not self._is_ready:
            look = select.poll()
            look.register(process.stdout)
            self._is_ready = bool(look.poll(0))
        return self._is_ready

    def register_leader(self, run_id: str, pid: int, started: int) -> None:
        """The run's first process: its id, and when it began (0: nobody knows). A later attempt has another."""
        if run_id in self._runs:
            self._runs[run_id][1:] = [f"={run_id} {pid} {started}"]
            self._write(self._runs[run_id][1])

    def unregister(self, run_id: str) -> None:
        """The run is over and nothing of it is left."""
        if self._runs.pop(run_id, None) is not None:
            self._write(f"-{run_id}")

    def close(self) -> None:
        """The client leaves in order: nothing is left to end."""
        self._write(".")
        self._forget()

    def _start(self) -> None:
        self._forget()
        self._client = os.getpid()
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(PROGRAM), str(self._client)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            cwd="/",
        )
        assert self._process.stdin is not None  # noqa: S101  # it is a pipe
        os.set_blocking(self._process.stdin.fileno(), False)
        for registered in self._runs.values():
            self._write(*registered)

    def _write(self, *lines: str) -> None:
        process = self._process
        if process is None or process.stdin is None or self._client != os.getpid():
            return
        try:
            for line in lines:
                os.write(process.stdin.fileno(), os.fsencode(line) + b"\n")
        except (BrokenPipeError, BlockingIOError):
            self._forget()  # somebody killed or stopped it; the next run starts another

    def _forget(self) -> None:
        process, self._process = self._process, None
        self._is_ready = False
        if process is None or process.stdin is None or process.stdout is None:
            return
        process.stdin.close()
        process.stdout.close()
        if self._client == os.getpid():
            try:
                process.wait(REAPER_TIMEOUT)
            except subprocess.TimeoutExpired:  # it is stopped
                process.kill()
                process.wait()
