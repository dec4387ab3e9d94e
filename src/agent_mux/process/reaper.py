"""A process that outlives the client by a moment, to end what the client left running when it was killed.

Its standard input is a pipe whose other end the client holds, with a line for each thing that it has to know:
`+<run id>` a run begins, `=<run id> <process id> <start>` its first process, `-<run id>` nothing of it is left, `.` the
client needs it no more. It acts when the client is gone, however it died: then every run that is still registered is
killed, grandchildren included, and its temp directory is removed. It watches the client itself, because the end of the
pipe alone says little: a fork of the client holds it, too.

Started as a script in an isolated interpreter without site-packages, so it costs little.
"""

import os
import select
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

LOOK_EVERY = 1000  # milliseconds between two looks for the client, where the system does not tell of its end
READ_SIZE = 1 << 16
PATIENCE = 2.0  # seconds for the reaper to leave


def main() -> None:
    """Wait for the client to go away, then end its runs."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    sys.path.insert(0, str(Path(__file__).parent))
    import marker  # type: ignore[import-not-found]  # noqa: PLC0415  # the sibling file, without the package around it

    runs: dict[str, tuple[int, int] | None] = {}
    for line in _lines_until_gone(int(sys.argv[1])):
        run_id, *process = line[1:].split(" ")
        match line[:1]:
            case ".":
                return
            case "-":
                runs.pop(run_id, None)
            case "=":
                runs[run_id] = int(process[0]), int(process[1])
            case _:
                runs[run_id] = None
    for run_id, leader in runs.items():
        if leader is not None and not leader[1]:  # no /proc: its group is all that can be found
            _end_group(leader[0])
        marker.kill_processes_of(run_id, signal.SIGKILL, None if leader is None else marker.Process(*leader))
        shutil.rmtree(marker.temp_dir_of(run_id), ignore_errors=True)


def _lines_until_gone(client: int) -> Iterator[str]:
    """What the client says, until it is gone."""
    poll = select.poll()
    poll.register(0, select.POLLIN)
    patience = None if _tells_of_end(client, poll) else LOOK_EVERY
    rest = b""
    while True:
        ready = {descriptor for descriptor, _ in poll.poll(patience)}
        if 0 in ready:
            said = os.read(0, READ_SIZE)
            *lines, rest = (rest + said).split(b"\n")
            yield from (line.decode() for line in lines)
            if not said:
                return
        elif ready or os.getppid() != client:
            return


def _tells_of_end(client: int, poll: "select.poll") -> bool:
    """Have the end of the client among what is waited for. False: it must be looked for."""
    try:
        poll.register(os.pidfd_open(client), select.POLLIN)
    except (AttributeError, OSError):  # not Linux, or an old one
        return False
    return os.getppid() == client  # otherwise it was gone, and that may have been somebody else


def _end_group(leader: int) -> None:
    try:
        os.killpg(leader, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return


class Reaper:
    """The client's end of the reaper. Starts it with the first run, and again when somebody killed it."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._client = 0
        """Whose it is: a fork of the client has a copy of this object."""
        self._runs: dict[str, str] = {}
        """Those that are alive, as they are registered."""

    def watch(self, run_id: str) -> None:
        """End this run's processes if the client dies. Raises `OSError` when no reaper can be started."""
        if self._process is None or self._process.poll() is not None:
            self._start()
        self._runs[run_id] = f"+{run_id}"
        self._write(self._runs[run_id])

    def began(self, run_id: str, pid: int, started: int) -> None:
        """The run's first process: its id, and when it began (0: nobody knows). A later attempt has another."""
        self._runs[run_id] = f"={run_id} {pid} {started}"
        self._write(self._runs[run_id])

    def release(self, run_id: str) -> None:
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
            [sys.executable, "-I", "-S", __file__, str(self._client)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            cwd="/",
        )
        assert self._process.stdin is not None  # noqa: S101  # it is a pipe
        os.set_blocking(self._process.stdin.fileno(), False)
        for registered in self._runs.values():
            self._write(registered)

    def _write(self, line: str) -> None:
        process = self._process
        if process is None or process.stdin is None or self._client != os.getpid():
            return
        try:
            os.write(process.stdin.fileno(), line.encode() + b"\n")
        except (BrokenPipeError, BlockingIOError):
            self._forget()  # somebody killed or stopped it; the next run starts another

    def _forget(self) -> None:
        process, self._process = self._process, None
        if process is None or process.stdin is None:
            return
        process.stdin.close()
        if self._client == os.getpid():
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:  # it is stopped
                process.kill()
                process.wait()


if __name__ == "__main__":
    main()
