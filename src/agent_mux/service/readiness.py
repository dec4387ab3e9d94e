"""Whether the service can start runs: a check that writes, since a full disk can be read."""

import os
import tempfile
import time
from pathlib import Path

import anyio
from anyio import to_thread

from agent_mux._util.files import make_directory
from agent_mux.errors import AgentMuxError
from agent_mux.run.environment import temp_dir_of
from agent_mux.service.store.instances import InstanceRow

MIN_INTERVAL = 1.0  # seconds: anybody may ask, and each check writes to the disk
PROBE_SIZE = 1 << 16  # bytes; the first records of a run


class Readiness:
    """Checks the database, the directory of recordings and that of temporary files. Requests share a check."""

    def __init__(self, own: InstanceRow, journals: Path) -> None:
        """`own`: the row that is written. `journals`: where runs are recorded."""
        self._own = own
        self._journals = journals
        self._lock = anyio.Lock()
        self._checked_at = float("-inf")
        self._failure: AgentMuxError | None = None

    async def check(self) -> None:
        """Raise UNAVAILABLE if nothing can be written."""
        self._own.require_held()
        async with self._lock:
            if time.monotonic() >= self._checked_at + MIN_INTERVAL:
                self._failure = await self._find_failure()
                self._checked_at = time.monotonic()
            failure = self._failure
        if failure is not None:
            raise AgentMuxError(failure.code, failure.message, recoverable=failure.recoverable)

    async def _find_failure(self) -> AgentMuxError | None:
        try:
            await self._own.database.check_file()
            await self._own.beat()
            await to_thread.run_sync(_probe_all, self._journals)
        except AgentMuxError as error:
            return error
        return None


def _probe_all(journals: Path) -> None:
    """Check the directories that every run writes to. Raises UNAVAILABLE, and SPAWN_ERROR without a temporary one."""
    _probe(journals)
    _probe(temp_dir_of("").parent)


def _probe(directory: Path) -> None:
    """Write a file as long as a short recording, and remove it. Raises UNAVAILABLE."""
    try:
        make_directory(directory)
        with tempfile.TemporaryFile(dir=directory) as file:
            file.write(bytes(PROBE_SIZE))
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        reason = f"cannot write to {directory}: {error.strerror or error}; free space there"
        raise AgentMuxError("UNAVAILABLE", reason) from error
