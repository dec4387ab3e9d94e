"""Locks by key: operations on one run, or with one idempotency key, are serialized."""

from collections.abc import AsyncGenerator, Collection, Hashable
from contextlib import AsyncExitStack, asynccontextmanager

import anyio


class KeyedLocks:
    """A lock per key, kept only while it is held or awaited."""

    def __init__(self) -> None:
        self._locks: dict[Hashable, anyio.Lock] = {}

    @asynccontextmanager
    async def hold(self, key: Hashable) -> AsyncGenerator[None, None]:
        """Hold the lock of this key."""
        lock = self._locks.setdefault(key, anyio.Lock())
        try:
            async with lock:
                yield
        finally:
            if not lock.locked():  # a waiter takes it over directly
                self._locks.pop(key, None)

    @asynccontextmanager
    async def hold_all(self, keys: Collection[str]) -> AsyncGenerator[None, None]:
        """Hold the locks of these keys, acquired in their order, so that no two callers wait for each other."""
        async with AsyncExitStack() as held:
            for key in sorted(set(keys)):
                await held.enter_async_context(self.hold(key))
            yield
