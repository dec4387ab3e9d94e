"""End the processes of checks if this process is killed: they are registered with a reaper process, as runs are.

All checks of this process share one reaper. It starts with the first check and ends with this process.
"""

import atexit
import contextlib
import threading
from collections.abc import Iterator

from agent_mux.process.marker import ProcessIdentity
from agent_mux.process.reaper import Reaper

_REAPER = Reaper()
_LOCK = threading.Lock()  # checks run in several threads
atexit.register(_REAPER.close)


@contextlib.contextmanager
def ended_with_client(marker: str) -> Iterator[None]:
    """End processes with this mark if this process dies inside of the block.

    Without a reaper, because the system starts no further process, the block is executed all the same.
    """
    try:
        with _LOCK, contextlib.suppress(OSError):
            _REAPER.watch(marker)
            _REAPER.block_until_ready()
        yield
    finally:
        with _LOCK:
            _REAPER.unregister(marker)


def register_leader(marker: str, pid: int, leader: ProcessIdentity | None) -> None:
    """Register the first process with this mark, so that those of its session are ended, too."""
    with _LOCK:
        _REAPER.register_leader(marker, pid, 0 if leader is None else leader.started)
