"""A process that outlives the client by a moment, to end what the client left running when it was killed.

Its standard input is a pipe whose other end the client holds, with a line for each thing that it has to know:

- `+<run id> <temp dir>`: a run begins
- `=<run id> <process id> <start>`: its first process, of the next attempt, too
- `-<run id>`: nothing of it is left
- `.`: the client needs it no more

It acts when the client is gone, however it died: then every run that is still registered is killed, grandchildren
included, and its temp directory is removed. It watches the client itself, because the end of the pipe alone says
little: a fork of the client holds it, too.

It says `.` on its standard output when it is ready. A script for an isolated interpreter without site-packages, and
with few imports, so that it is ready soon.
"""

import os
import select
import signal
import sys
from collections.abc import Iterator

LOOK_EVERY = 1000  # milliseconds between two looks for the client, where the system does not tell of its end
READ_SIZE = 1 << 16


def main() -> None:
    """Wait for the client to go away, then end its runs."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    sys.path.insert(0, os.path.dirname(__file__))  # noqa: PTH120  # pathlib takes as long to import as all the rest
    import marker  # type: ignore[import-not-found]  # noqa: PLC0415  # the sibling file, without the package around it

    _say_ready()
    leaders: dict[str, tuple[int, int] | None] = {}
    places: dict[str, str] = {}
    for line in _lines_until_gone(int(sys.argv[1])):
        run_id, _, rest = line[1:].partition(" ")
        match line[:1]:
            case ".":
                return
            case "-":
                leaders.pop(run_id, None)
            case "=":
                pid, started = map(int, rest.split())
                leaders[run_id] = pid, started
            case _:
                leaders[run_id], places[run_id] = None, rest
    # First those of which nothing is known but that they begin: they may not carry every mark yet.
    for run_id, leader in sorted(leaders.items(), key=lambda item: item[1] is not None):
        if leader is not None and not leader[1]:  # no /proc: its group is all that can be found
            _end_group(leader[0])
        marker.kill_processes_of(run_id, signal.SIGKILL, None if leader is None else marker.ProcessIdentity(*leader))
    _remove([places[run_id] for run_id in leaders if run_id in places])


def _say_ready() -> None:
    try:
        os.write(1, b".")
    except BrokenPipeError:
        return  # the client has lost its patience, or its life


def _remove(directories: list[str]) -> None:
    import shutil  # noqa: PLC0415  # it can wait

    for directory in directories:
        shutil.rmtree(directory, ignore_errors=True)


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
            yield from (os.fsdecode(line) for line in lines)
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


if __name__ == "__main__":
    main()
