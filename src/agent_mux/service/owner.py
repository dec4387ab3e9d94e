"""Who holds an instance or has claimed a run: a process, in a place, and whether it is still there.

A server stores this with everything that it owns. Another one with the same instance id (a copied directory whose place
was removed, a removed lock file) then knows whether the owner is dead. Only what a dead owner left is cleaned up.
"""

import os
from enum import StrEnum
from pathlib import Path

import msgspec

from agent_mux.process.marker import identify
from agent_mux.service.instance import InstancePlace

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_PID_NAMESPACE = "/proc/self/ns/pid"


class Life(StrEnum):
    """What is known about an owner."""

    ALIVE = "alive"
    DEAD = "dead"
    UNKNOWN = "unknown"
    """It is on another machine, or in another container."""


class Owner(msgspec.Struct, frozen=True, omit_defaults=True):
    """A server process. Its identity survives the reuse of process ids and restarts of the machine."""

    place: InstancePlace
    """Its directory and machine."""
    pid: int
    started: int
    """Start time of the process, as the kernel counts it; 0: unknown."""
    boot: str = ""
    namespace: str = ""
    """Its namespace of process ids."""

    @classmethod
    def of_process(cls, place: InstancePlace) -> "Owner":
        """Return this process as the server of a directory."""
        found = identify(os.getpid())
        return cls(
            place=place,
            pid=os.getpid(),
            started=0 if found is None else found.started,
            boot=_read(_BOOT_ID),
            namespace=_namespace(),
        )

    @classmethod
    def decode(cls, text: str | None) -> "Owner | None":
        """Return a stored owner; None: an earlier version stored none, or a later one stores more."""
        try:
            return None if text is None else msgspec.json.decode(text, type=cls)
        except msgspec.DecodeError:
            return None

    def encode(self) -> str:
        """Return the owner as it is stored."""
        return msgspec.json.encode(self).decode()

    def life_for(self, other: "Owner") -> Life:
        """Return whether it is alive, as far as a server `other`, this process, can know."""
        if self.place.machine != other.place.machine:
            return Life.UNKNOWN
        if self.boot != other.boot:
            return Life.DEAD
        if self.namespace != other.namespace or not self.started:
            return Life.UNKNOWN
        if (self.pid, self.started) == (other.pid, other.started):  # an earlier service of this process, or a second
            return Life.DEAD if self.place.is_same(other.place) else Life.ALIVE
        found = identify(self.pid)
        return Life.ALIVE if found is not None and found.started == self.started else Life.DEAD


def _read(path: Path) -> str:
    try:
        return path.read_text("ascii").strip()
    except OSError:  # not Linux
        return ""


def _namespace() -> str:
    try:
        return os.readlink(_PID_NAMESPACE)  # noqa: PTH115  # it is no path
    except OSError:  # not Linux
        return ""
