"""A process that outlives the client by a moment, to end what the client left running when it was killed.

It reads `+<run id>` and `-<run id>` lines from its standard input, a pipe whose other end only the client holds. When
that end closes, however the client died, every run that is still registered is killed, grandchildren included, and its
temp directory is removed.

Started as a script in an isolated interpreter without site-packages, so it costs little.
"""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path


def main() -> None:
    """Wait for the client to go away, then end its runs."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    sys.path.insert(0, str(Path(__file__).parent))
    import marker  # type: ignore[import-not-found]  # noqa: PLC0415  # the sibling file, without the package around it

    runs: set[str] = set()
    for line in sys.stdin:
        sign, run_id = line[:1], line[1:].strip()
        if sign == "+":
            runs.add(run_id)
        else:
            runs.discard(run_id)
    for run_id in runs:
        marker.kill_processes_of(run_id)
        shutil.rmtree(marker.temp_dir_of(run_id), ignore_errors=True)


class Reaper:
    """The client's end of the reaper. Starts it with the first run."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def watch(self, run_id: str) -> None:
        """End this run's processes if the client dies."""
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", __file__],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                cwd="/",
            )
        self._write(f"+{run_id}\n")

    def release(self, run_id: str) -> None:
        """The run is over and nothing of it is left."""
        self._write(f"-{run_id}\n")

    def close(self) -> None:
        """The client leaves in order: nothing is left to end."""
        process, self._process = self._process, None
        if process is not None and process.stdin is not None:
            process.stdin.close()
            process.wait()

    def _write(self, line: str) -> None:
        if self._process is not None and self._process.stdin is not None:
            try:
                os.write(self._process.stdin.fileno(), line.encode())
            except BrokenPipeError:
                self._process = None  # somebody killed the reaper; the next run starts another


if __name__ == "__main__":
    main()
