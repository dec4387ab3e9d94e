"""A process that outlives the client to end the runs that the client left when it was killed.

The client holds the other end of the pipe that is our standard input, and writes one line for each change:

- `+<run id> <temp dir>`: a run begins; the temp dir may be empty
- `=<run id> <process id> <start>`: its first process; also sent for each later attempt
- `-<run id>`: no process of the run is left

When the client has ended, for whatever reason, the reaper kills all processes of every run that is still registered,
grandchildren included, and removes its temp directory. It watches the client process itself, because the end of the
pipe is not sufficient: a fork of the client holds the pipe open, too.

The reaper writes `.` to its standard output when it is ready. It is a script for an isolated interpreter without
site-packages, and imports few modules in order to be ready soon.
"""

import os
import select
import signal
import sys
from collections.abc import Iterator

POLL_INTERVAL = 1000  # milliseconds between two checks of the client, where the system cannot report its end
READ_SIZE = 1 << 16


def main() -> None:
    """Wait for the client to end, then kill its registered runs."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)
    sys.path.insert(0, os.path.dirname(__file__))  # noqa: PTH120  # importing pathlib takes as long as everything else
    import marker  # type: ignore[import-not-found]  # noqa: PLC0415  # the sibling file, without the package around it

    _report_ready()
    leaders: dict[str, tuple[int, int] | None] = {}
    temp_dirs: dict[str, str] = {}
    for line in _read_until_client_ends(int(sys.argv[1])):
        run_id, _, rest = line[1:].partition(" ")
        match line[:1]:
            case "-":
                leaders.pop(run_id, None)
            case "=":
                pid, started = map(int, rest.split())
                leaders[run_id] = pid, started
            case _:
                leaders[run_id], temp_dirs[run_id] = None, rest
    # Runs without a registered leader first: their processes may not have every mark yet.
    for run_id, leader in sorted(leaders.items(), key=lambda item: item[1] is not None):
        if leader is not None and not leader[1]:  # no /proc: only the process group can be found
            _kill_group(leader[0])
        marker.kill_processes_of(run_id, signal.SIGKILL, None if leader is None else marker.ProcessIdentity(*leader))
    _remove_directories([temp_dirs[run_id] for run_id in leaders if temp_dirs.get(run_id)])


def _report_ready() -> None:
    try:
        os.write(1, b".")
    except BrokenPipeError:
        return  # the client no longer waits, or has ended


def _remove_directories(directories: list[str]) -> None:
    import shutil  # noqa: PLC0415  # imported late for a fast start

    for directory in directories:
        shutil.rmtree(directory, ignore_errors=True)


def _read_until_client_ends(client: int) -> Iterator[str]:
    """Yield the client's lines until the client has ended."""
    poll = select.poll()
    poll.register(0, select.POLLIN)
    timeout = None if _watch_client(client, poll) else POLL_INTERVAL
    rest = b""
    while True:
        ready = {descriptor for descriptor, _ in poll.poll(timeout)}
        if 0 in ready:
            data = os.read(0, READ_SIZE)
            *lines, rest = (rest + data).split(b"\n")
            yield from (os.fsdecode(line) for line in lines)
            if not data:
                return
        elif ready or os.getppid() != client:
            return


def _watch_client(client: int, poll: "select.poll") -> bool:
    """Add the end of the client to the polled events. Returns False if the client must be checked periodically."""
    try:
        poll.register(os.pidfd_open(client), select.POLLIN)
    except (AttributeError, OSError):  # not Linux, or an old kernel
        return False
    return os.getppid() == client  # otherwise the client had ended, and its id may have been reused


def _kill_group(leader: int) -> None:
    try:
        os.killpg(leader, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return


if __name__ == "__main__":
    main()
