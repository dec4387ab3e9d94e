"""Finding every process of a run, wherever it went.

A process group is not enough: the shells that coding agents start live in sessions of their own, and survive their
agent; a daemon has neither a parent nor, often, an environment. So a process belongs to a run when

- it carries the run's variable in its environment,
- or the run's number as its limit of real-time CPU (`RLIMIT_RTTIME`): microseconds that nobody ever reaches, that
  every child inherits, whatever it drops or cleans, and that no unprivileged process can raise again,
- or it is in the session of the run's first process,
- or its parent belongs to the run.

A process is a number and the time it began: a number that is used again is somebody else, and is never signalled.

The reaper runs this module in an interpreter without site-packages, and wants to be ready soon: it imports little, and
of the standard library only.
"""

import os
import signal
from collections.abc import Iterator
from typing import NamedTuple

PREFIX = "AGENT_MUX_RUN_"
ROUNDS = 50  # a process can fork while we look; each round sees what the one before missed
LOOKS_TO_BE_SURE = 2  # a child can take a number that we have passed, and its parent be gone before we come to it
PROC = "/proc"
_OUTER, _INNER = 1 << 62, 1 << 61
"""Where the numbers of runs begin. A run inside of a run has a lower one: a limit can only be lowered."""
_READ_SIZE = 1 << 12
_DEAD = frozenset({b"Z", b"X"})


class ProcessIdentity(NamedTuple):
    """One process, for ever."""

    pid: int
    started: int
    """Clock ticks after the start of the machine."""


class _Marks(NamedTuple):
    """What the processes of a run carry."""

    variable: bytes
    limits: tuple[bytes, ...]
    """As they are shown among the limits of a process."""


class _Look(NamedTuple):
    process: ProcessIdentity
    parent: int
    session: int
    is_dead: bool


def marker_variable(run_id: str) -> str:
    """The name of the environment variable that marks the processes of a run."""
    return PREFIX + run_id


def run_number(run_id: str) -> int:
    """The number that marks them, below 2**61."""
    number = 0
    for letter in run_id.encode():
        number = (number * 257 + letter) % _INNER
    return number


def _marks_of(run_id: str) -> _Marks:
    number = run_number(run_id)
    return _Marks(marker_variable(run_id).encode() + b"=", (b" %d " % (_OUTER + number), b" %d " % (_INNER + number)))


def mark(pid: int, run_id: str) -> bool:
    """Mark a process that just began, and all children it will ever have. False: this system has no such mark."""
    try:
        import resource  # noqa: PLC0415  # not on every platform

        unlimited, kind = resource.RLIM_INFINITY, resource.RLIMIT_RTTIME
        _, hard = resource.prlimit(pid, kind)
        outer, inner = _OUTER + run_number(run_id), _INNER + run_number(run_id)
        resource.prlimit(pid, kind, (outer, outer) if hard == unlimited else (inner, hard))
    except (AttributeError, ImportError, OSError, ValueError):
        return False
    return True


def identify(pid: int) -> ProcessIdentity | None:
    """The process that has this number now, dead or alive. None where nobody knows."""
    look = _look(str(pid))
    return None if look is None else look.process


def processes_of(run_id: str, leader: ProcessIdentity | None = None) -> list[int]:
    """Ids of the living processes of a run. Empty where there is no /proc (macOS: see the docs).

    `leader`: the first process of the run, when it is known; whatever began before it is nobody's child of it.
    """
    return [process.pid for process in _census(run_id, leader)]


def kill_processes_of(run_id: str, number: int = signal.SIGKILL, leader: ProcessIdentity | None = None) -> int:
    """Send a signal to every process of the run; SIGKILL until none is left. Returns how many were signalled."""
    seen: set[ProcessIdentity] = set()
    immune: set[ProcessIdentity] = set()
    empty_looks = 0
    for _ in range(ROUNDS):
        alive = [process for process in _census(run_id, leader) if process not in immune]
        immune.update(process for process in alive if not _signal(process, number))
        seen.update(alive)
        empty_looks = 0 if alive else empty_looks + 1
        if number != signal.SIGKILL or empty_looks == LOOKS_TO_BE_SURE:
            break
    return len(seen - immune)


def _census(run_id: str, leader: ProcessIdentity | None) -> list[ProcessIdentity]:
    looks = {look.process.pid: look for look in _looks(leader.started if leader is not None else 0)}
    session, marks = _session(leader), _marks_of(run_id)
    found = {
        pid for pid, look in looks.items() if (session is not None and look.session == session) or _has_mark(pid, marks)
    }
    found.discard(os.getpid())
    grown = True
    while grown:
        children = {pid for pid, look in looks.items() if look.parent in found} - found - {os.getpid()}
        grown = bool(children)
        found |= children
    return [looks[pid].process for pid in sorted(found) if not looks[pid].is_dead]


def _session(leader: ProcessIdentity | None) -> int | None:
    """The leader's session, as long as its number is surely its own: until it is reaped."""
    return leader.pid if leader is not None and identify(leader.pid) == leader else None


def _looks(since: int) -> Iterator[_Look]:
    try:
        names = os.listdir(PROC)  # noqa: PTH208  # a path for each of them costs more than the look
    except OSError:
        return
    for name in names:
        if name.isdigit():
            look = _look(name)
            if look is not None and look.process.started >= since:
                yield look


def _look(name: str) -> _Look | None:
    stat = _read(f"{PROC}/{name}/stat")
    fields = stat[stat.rfind(b")") + 1 :].split()  # the name before may contain anything
    if len(fields) < 20:
        return None  # gone meanwhile
    return _Look(ProcessIdentity(int(name), int(fields[19])), int(fields[1]), int(fields[3]), fields[0] in _DEAD)


def _has_mark(pid: int, marks: _Marks) -> bool:
    environment = _read(f"{PROC}/{pid}/environ")
    if environment.startswith(marks.variable) or b"\0" + marks.variable in environment:
        return True
    limits = _read(f"{PROC}/{pid}/limits")
    return any(limit in limits for limit in marks.limits)


def _read(path: str) -> bytes:
    """A file of /proc; empty when it is gone, or somebody else's."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        parts = []
        while part := os.read(descriptor, _READ_SIZE):
            parts.append(part)
        return b"".join(parts)
    except OSError:
        return b""
    finally:
        os.close(descriptor)


def _signal(process: ProcessIdentity, number: int) -> bool:
    """Signal this process and no other. False: it is not ours to signal."""
    try:
        descriptor = os.pidfd_open(process.pid)
    except (AttributeError, OSError):  # gone; or an old system, or too many files: then between two looks
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
