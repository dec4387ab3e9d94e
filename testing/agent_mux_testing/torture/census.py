"""Processes, descriptors, threads and memory that a case leaves, found independently of the code under test.

The processes of a case are recognised by a token in their argv, which a process cannot lose without executing another
program, or in their environment, for processes that only inherit it.
"""

import os
import signal
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import anyio

POLL_INTERVAL = 0.02  # seconds
_POOLED = ("AnyIO worker thread", "Trio thread")  # the event loop keeps them for reuse


def survivors(token: str) -> list[int]:
    """Return the ids of the running processes with this token, except this one."""
    token_bytes = token.encode()
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                command_and_environment = (entry / "cmdline").read_bytes() + b"\0" + (entry / "environ").read_bytes()
            except OSError:
                continue  # it has exited, or belongs to another user
            if token_bytes in command_and_environment:
                found.append(int(entry.name))
    return found


async def all_gone(token: str, seconds: float) -> float | None:
    """Wait until no process has this token. Return the seconds it took; None when it took longer than `seconds`."""
    begun = time.monotonic()
    while survivors(token):
        if time.monotonic() - begun > seconds:
            return None
        await anyio.sleep(POLL_INTERVAL)
    return time.monotonic() - begun


def end(token: str) -> None:
    """Kill all processes with this token, so that a failed case does not affect the next one."""
    for pid in survivors(token):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue


def name_of(pid: int) -> str:
    """Return the id and the command of a process, for a finding."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
    except OSError:
        words = ""
    return f"{pid} ({words.strip()[-80:]})"


@dataclass(frozen=True, slots=True)
class Footprint:
    """The open descriptors and running threads of this process."""

    descriptors: frozenset[str]
    threads: frozenset[str]

    @classmethod
    def now(cls) -> "Footprint":
        """Return the footprint of this process at this moment."""
        threads = (thread.name for thread in threading.enumerate())
        return cls(frozenset(_open_descriptors()), frozenset(name for name in threads if not name.startswith(_POOLED)))

    def leaks(self) -> list[str]:
        """Return what has been added since, one sentence each."""
        now = Footprint.now()
        return [
            *(f"descriptor {name} was left open" for name in sorted(now.descriptors - self.descriptors)),
            *(f"thread {name} was left" for name in sorted(now.threads - self.threads)),
        ]


def _open_descriptors() -> list[str]:
    found = []
    for name in os.listdir("/dev/fd"):  # noqa: PTH208  # only the names are needed
        try:
            os.fstat(int(name))
        except OSError:
            continue  # the descriptor of the listing itself
        found.append(name)
    return found


class Memory:
    """The growth of this process's memory since the object was created."""

    def __init__(self) -> None:
        self._before = self._peak = _resident()

    async def watch(self) -> None:
        """Measure repeatedly until the task is cancelled."""
        while True:
            self._peak = max(self._peak, _resident())
            await anyio.sleep(POLL_INTERVAL)

    @property
    def peak_mib(self) -> float:
        """The largest growth so far, in MiB."""
        self._peak = max(self._peak, _resident())
        return (self._peak - self._before) / (1 << 20)


def _resident() -> int:
    pages = Path("/proc/self/statm").read_bytes().split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")
