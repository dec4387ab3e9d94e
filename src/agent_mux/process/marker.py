"""Finding every process of a run, including those that left its process group.

A process group is not enough: the shells that coding agents start have their own sessions and survive their agent, and
a daemon has neither a parent nor, often, an environment. A process belongs to a run if

- its environment contains the run's variable,
- or its limit of real-time CPU (`RLIMIT_RTTIME`) is the run's number: a limit in microseconds that no process ever
  reaches, that every child inherits even with a clean environment, and that no unprivileged process can raise again,
- or it is in the session of the run's first process,
- or its parent belongs to the run.

A process is identified by its id and its start time: a reused id is another process and is never signalled.

The reaper runs this module in an interpreter without site-packages and must be ready soon. Therefore the module imports
few modules, all of the standard library.
"""

import os
import signal
from collections.abc import Iterator
from typing import NamedTuple

PREFIX = "AGENT_MUX_RUN_"
MAX_SCANS = 50  # a process can fork during a scan; the next scan finds its child
EMPTY_SCANS_REQUIRED = 2  # a scan misses a child whose id it has passed if the parent ends before the scan reaches it
PROC = "/proc"
MAX_COMMAND_LINE = 200  # bytes of a command line that is shown
_OUTER, _INNER = 1 << 62, 1 << 61
"""Smallest numbers of runs. A run inside another run uses the lower one: a limit can only be lowered."""
_READ_SIZE = 1 << 12
_DEAD = frozenset({b"Z", b"X"})


class ProcessIdentity(NamedTuple):
    """A process id together with its start time: unique also after the id is reused."""

    pid: int
    started: int
    """Clock ticks from the start of the machine to the start of the process."""


class _Marks(NamedTuple):
    """What every process of a run carries."""

    variable: bytes
    limits: tuple[bytes, ...]
    """The run's number as /proc shows it among the limits of a process."""


class _ProcessStat(NamedTuple):
    process: ProcessIdentity
    parent: int
    session: int
    is_dead: bool


def marker_variable(run_id: str) -> str:
    """Return the name of the environment variable that marks the processes of a run."""
    return PREFIX + run_id


def run_number(run_id: str) -> int:
    """Return the number, below 2**61, that marks the processes of a run."""
    number = 0
    for letter in run_id.encode():
        number = (number * 257 + letter) % _INNER
    return number


def _run_marks(run_id: str) -> _Marks:
    number = run_number(run_id)
    return _Marks(marker_variable(run_id).encode() + b"=", (b" %d " % (_OUTER + number), b" %d " % (_INNER + number)))


def mark(pid: int, run_id: str) -> bool:
    """Mark a new process and all its future children. Returns False if the system does not support the mark."""
    try:
        import resource  # noqa: PLC0415  # not on every platform

        unlimited, limit = resource.RLIM_INFINITY, resource.RLIMIT_RTTIME
        _, hard = resource.prlimit(pid, limit)
        outer, inner = _OUTER + run_number(run_id), _INNER + run_number(run_id)
        resource.prlimit(pid, limit, (outer, outer) if hard == unlimited else (inner, hard))
    except (AttributeError, ImportError, OSError, ValueError):
        return False
    return True


def identify(pid: int) -> ProcessIdentity | None:
    """Return the identity of the process with this id, running or zombie; None if it is unknown."""
    stat = _read_stat(str(pid))
    return None if stat is None else stat.process


def processes_of(run_id: str, leader: ProcessIdentity | None = None) -> list[int]:
    """Return the ids of the living processes of a run; empty without /proc (macOS: see docs/design/supervision.md).

    `leader`: the first process of the run, if it is known. Processes that began before it cannot belong to the run.
    """
    return [process.pid for process in _find_processes(run_id, leader)]


def command_lines_of(run_id: str, leader: ProcessIdentity | None = None) -> list[str]:
    """Return the command lines of the living processes of a run, shortened; empty without /proc."""
    lines = (_read(f"{PROC}/{process.pid}/cmdline") for process in _find_processes(run_id, leader))
    return [
        line.rstrip(b"\0").replace(b"\0", b" ")[:MAX_COMMAND_LINE].decode("utf-8", "replace") for line in lines if line
    ]


def belongs_to_run(pid: int, run_id: str) -> bool:
    """Return whether a process, or one of its ancestors, has a mark of the run. False without /proc."""
    marks = _run_marks(run_id)
    seen: set[int] = set()
    while pid > 1 and pid not in seen:
        if _has_mark(pid, marks):
            return True
        seen.add(pid)
        stat = _read_stat(str(pid))
        pid = 0 if stat is None else stat.parent
    return False


def kill_processes_of(run_id: str, number: int = signal.SIGKILL, leader: ProcessIdentity | None = None) -> int:
    """Send a signal to every process of the run; repeat SIGKILL until none is left.

    Returns the number of processes that were signalled.
    """
    seen: set[ProcessIdentity] = set()
    immune: set[ProcessIdentity] = set()
    empty_scans = 0
    for _ in range(MAX_SCANS):
        alive = [process for process in _find_processes(run_id, leader) if process not in immune]
        immune.update(process for process in alive if not _signal(process, number))
        seen.update(alive)
        empty_scans = 0 if alive else empty_scans + 1
        if number != signal.SIGKILL or empty_scans == EMPTY_SCANS_REQUIRED:
            break
    return len(seen - immune)


def _find_processes(run_id: str, leader: ProcessIdentity | None) -> list[ProcessIdentity]:
    stats = {stat.process.pid: stat for stat in _process_stats(leader.started if leader is not None else 0)}
    session, marks = _session(leader), _run_marks(run_id)
    found = {
        pid for pid, stat in stats.items() if (session is not None and stat.session == session) or _has_mark(pid, marks)
    }
    found.discard(os.getpid())
    grown = True
    while grown:
        children = {pid for pid, stat in stats.items() if stat.parent in found} - found - {os.getpid()}
        grown = bool(children)
        found |= children
    return [stats[pid].process for pid in sorted(found) if not stats[pid].is_dead]


def _session(leader: ProcessIdentity | None) -> int | None:
    """Return the leader's session id, or None if the leader was reaped and its id may be reused."""
    return leader.pid if leader is not None and identify(leader.pid) == leader else None


def _process_stats(since: int) -> Iterator[_ProcessStat]:
    try:
        names = os.listdir(PROC)  # noqa: PTH208  # a Path object for each costs more than reading its stat
    except OSError:
        return
    for name in names:
        if name.isdigit():
            stat = _read_stat(name)
            if stat is not None and stat.process.started >= since:
                yield stat


def _read_stat(name: str) -> _ProcessStat | None:
    line = _read(f"{PROC}/{name}/stat", is_short=True)
    fields = line[line.rfind(b")") + 1 :].split(None, 20)  # the program name before it may contain any character
    if len(fields) < 20:
        return None  # the process has ended meanwhile
    return _ProcessStat(ProcessIdentity(int(name), int(fields[19])), int(fields[1]), int(fields[3]), fields[0] in _DEAD)


def _has_mark(pid: int, marks: _Marks) -> bool:
    environment = _read(f"{PROC}/{pid}/environ")
    if environment.startswith(marks.variable) or b"\0" + marks.variable in environment:
        return True
    limits = _read(f"{PROC}/{pid}/limits")
    return any(limit in limits for limit in marks.limits)


def _read(path: str, *, is_short: bool = False) -> bytes:
    """Return the content of a file of /proc; empty if the process has ended or belongs to another user.

    `is_short`: it is never longer than one read.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        if is_short:
            return os.read(descriptor, _READ_SIZE)
        parts = []
        while part := os.read(descriptor, _READ_SIZE):
            parts.append(part)
        return b"".join(parts)
    except OSError:
        return b""
    finally:
        os.close(descriptor)


def _signal(process: ProcessIdentity, number: int) -> bool:
    """Signal exactly this process. Returns False if we lack the permission."""
    try:
        descriptor = os.pidfd_open(process.pid)
    except (AttributeError, OSError):  # process ended, old kernel, or too many open files: fall back to `os.kill`
        descriptor = None
    try:
        if identify(process.pid) != process:
            return True
        if descriptor is None:
            os.kill(process.pid, number)
        else:
            signal.pidfd_send_signal(descriptor, number)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    finally:
        if descriptor is not None:
            os.close(descriptor)
    return True
