"""Who and what is left: by means that are not those under test.

The processes of a case are known by a token: in the argv of each of them, which they cannot get rid of without starting
another program, or in the environment, for those that only inherit.
"""

import os
import signal
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import anyio

LOOK_EVERY = 0.02  # seconds
_POOLED = ("AnyIO worker thread", "Trio thread")  # kept by the event loop for later, whoever used them


def survivors(token: str) -> list[int]:
    """The living processes with this token, besides this one."""
    wanted = token.encode()
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                known_by = (entry / "cmdline").read_bytes() + b"\0" + (entry / "environ").read_bytes()
            except OSError:
                continue  # gone, or somebody else's
            if wanted in known_by:
                found.append(int(entry.name))
    return found


async def all_gone(token: str, seconds: float) -> float | None:
    """Wait until there are none. Returns how long that took; None: longer than that."""
    begun = time.monotonic()
    while survivors(token):
        if time.monotonic() - begun > seconds:
            return None
        await anyio.sleep(LOOK_EVERY)
    return time.monotonic() - begun


def end(token: str) -> None:
    """A case that failed must not spoil the next."""
    for pid in survivors(token):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue


def name_of(pid: int) -> str:
    """A process, as a finding names it."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
    except OSError:
        words = ""
    return f"{pid} ({words.strip()[-80:]})"


@dataclass(frozen=True, slots=True)
class Footprint:
    """What this process holds."""

    descriptors: frozenset[str]
    threads: frozenset[str]

    @classmethod
    def now(cls) -> "Footprint":
        """As it is."""
        threads = (thread.name for thread in threading.enumerate())
        return cls(frozenset(_open_descriptors()), frozenset(name for name in threads if not name.startswith(_POOLED)))

    def leaks(self) -> list[str]:
        """What is there now and was not then, one sentence each."""
        now = Footprint.now()
        return [
            *(f"descriptor {name} was left open" for name in sorted(now.descriptors - self.descriptors)),
            *(f"thread {name} was left" for name in sorted(now.threads - self.threads)),
        ]


def _open_descriptors() -> list[str]:
    found = []
    for name in os.listdir("/dev/fd"):  # noqa: PTH208  # names are what is wanted
        try:
            os.fstat(int(name))
        except OSError:
            continue  # the one that listed
        found.append(name)
    return found


class Memory:
    """Watches how much more memory this process has than at the beginning."""

    def __init__(self) -> None:
        self._before = self._peak = _resident()

    async def watch(self) -> None:
        """Look until cancelled."""
        while True:
            self._peak = max(self._peak, _resident())
            await anyio.sleep(LOOK_EVERY)

    @property
    def peak_mib(self) -> float:
        """The most that it grew by, so far."""
        self._peak = max(self._peak, _resident())
        return (self._peak - self._before) / (1 << 20)


def _resident() -> int:
    pages = Path("/proc/self/statm").read_bytes().split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")
