"""Every process that a command started, wherever it went: by its group, its session, or the mark in its environment.

Only Linux has /proc; elsewhere the process group is all there is. A process that cleans its environment and makes a
session of its own (`env -i setsid ...`) is not found, unless its parent still lives.
"""

import os
import signal
from pathlib import Path
from typing import NamedTuple

MARK = "AGENT_LOOP_COMMAND_"
"""Begins the name of the variable that marks the processes of one command. A name for each: commands start agents."""

_PROC = Path("/proc")
_DEAD = frozenset({b"Z", b"X"})


class Started(NamedTuple):
    """A command that was started: its first process leads a group and a session."""

    pid: int
    mark: str
    """Name of the variable that its processes have."""


class _Seen(NamedTuple):
    pid: int
    parent: int
    group: int
    session: int
    is_dead: bool


def living(command: Started) -> list[int]:
    """Ids of its processes that live. Elsewhere than on Linux: its group, as long as there is anything in it."""
    if not _PROC.joinpath("self/stat").exists():
        return [command.pid] if _signalled_group(command.pid, 0) else []
    seen = [look for path in _PROC.iterdir() if path.name.isdigit() and (look := _look(path)) is not None]
    found = {
        look.pid for look in seen if command.pid in {look.group, look.session} or _is_marked(look.pid, command.mark)
    }
    grown = True
    while grown:
        children = {look.pid for look in seen if look.parent in found} - found
        grown = bool(children)
        found |= children
    return [look.pid for look in seen if look.pid in found and not look.is_dead and look.pid != os.getpid()]


def signal_all(command: Started, number: signal.Signals) -> int:
    """A signal to all of them. Returns how many lived."""
    alive = living(command)
    _signalled_group(command.pid, number)
    for pid in alive:
        try:
            if os.getpgid(pid) != command.pid:  # the group has had it
                os.kill(pid, number)
        except (ProcessLookupError, PermissionError):
            continue
    return len(alive)


def _signalled_group(pid: int, number: int) -> bool:
    try:
        os.killpg(pid, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def _look(path: Path) -> _Seen | None:
    stat = _read(path / "stat")
    fields = stat[stat.rfind(b")") + 1 :].split()  # the name before may contain anything
    if len(fields) < 4:
        return None  # gone meanwhile
    return _Seen(int(path.name), int(fields[1]), int(fields[2]), int(fields[3]), fields[0] in _DEAD)


def _is_marked(pid: int, mark: str) -> bool:
    return f"\0{mark}=".encode() in b"\0" + _read(_PROC / str(pid) / "environ")


def _read(path: Path) -> bytes:
    """A file of /proc; empty when it is gone, or somebody else's."""
    try:
        return path.read_bytes()
    except OSError:
        return b""
