"""One at a time for each key: what is done to one run, or under one idempotency key, waits for nothing else."""

from collections.abc import AsyncGenerator, Hashable
from contextlib import asynccontextmanager

import anyio


class Turns:
    """Locks that are there as long as somebody has or wants them."""

    def __init__(self) -> None:
        self._locks: dict[Hashable, anyio.Lock] = {}

    @asynccontextmanager
    async def of(self, key: Hashable) -> AsyncGenerator[None, None]:
        """Be the only one with this key."""
        lock = self._locks.setdefault(key, anyio.Lock())
        try:
            async with lock:
                yield
        finally:
            if not lock.locked():  # it is handed over directly to the next one who waits
                self._locks.pop(key, None)
