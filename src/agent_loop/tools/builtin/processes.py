"""Find and signal all processes of a command: by process group, session, parent, or a mark in their environment.

The search needs /proc, which only Linux has; elsewhere only the process group is signalled. A process that clears its
environment and creates its own session (`env -i setsid ...`) is found only while its parent is alive.
"""

import os
import signal
from pathlib import Path
from typing import NamedTuple

MARK = "AGENT_LOOP_COMMAND_"
"""The prefix of the environment variable that marks the processes of one command.

Each command has its own variable, because a command may start another agent, which starts commands.
"""

_PROC = Path("/proc")
_DEAD = frozenset({b"Z", b"X"})


class StartedCommand(NamedTuple):
    """A command whose first process leads a process group and a session."""

    pid: int
    mark: str
    """The name of the environment variable that marks its processes."""


class _ProcessInfo(NamedTuple):
    pid: int
    parent: int
    group: int
    session: int
    is_dead: bool


def find_processes(command: StartedCommand) -> list[int]:
    """Return the ids of the living processes of a command. Without /proc: the group's id, while it has members."""
    if not _PROC.joinpath("self/stat").exists():
        return [command.pid] if _signal_group(command.pid, 0) else []
    known = [info for path in _PROC.iterdir() if path.name.isdigit() and (info := _read_info(path)) is not None]
    found = {
        info.pid for info in known if command.pid in {info.group, info.session} or _is_marked(info.pid, command.mark)
    }
    grown = True
    while grown:
        children = {info.pid for info in known if info.parent in found} - found
        grown = bool(children)
        found |= children
    return [info.pid for info in known if info.pid in found and not info.is_dead and info.pid != os.getpid()]


def signal_processes(command: StartedCommand, number: signal.Signals) -> int:
    """Send a signal to all processes of a command. Return how many were alive."""
    alive = find_processes(command)
    _signal_group(command.pid, number)
    for pid in alive:
        try:
            if os.getpgid(pid) != command.pid:  # the group was signalled already
                os.kill(pid, number)
        except (ProcessLookupError, PermissionError):
            continue
    return len(alive)


def stop_processes(command: StartedCommand) -> None:
    """Stop all processes of a command with SIGSTOP."""
    for _ in range(2):  # a process can fork before it is stopped
        signal_processes(command, signal.SIGSTOP)


def _signal_group(pid: int, number: int) -> bool:
    try:
        os.killpg(pid, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def _read_info(path: Path) -> _ProcessInfo | None:
    stat = _read(path / "stat")
    fields = stat[stat.rfind(b")") + 1 :].split()  # the name in parentheses may contain anything
    if len(fields) < 4:
        return None  # the process ended in the meantime
    return _ProcessInfo(int(path.name), int(fields[1]), int(fields[2]), int(fields[3]), fields[0] in _DEAD)


def _is_marked(pid: int, mark: str) -> bool:
    return f"\0{mark}=".encode() in b"\0" + _read(_PROC / str(pid) / "environ")


def _read(path: Path) -> bytes:
    """Return the content of a file in /proc, empty if the process ended or belongs to another user."""
    try:
        return path.read_bytes()
    except OSError:
        return b""
