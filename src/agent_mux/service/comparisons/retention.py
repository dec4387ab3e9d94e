"""Deletes comparisons that exceed the configured age or number, with all their records.

A comparison that trials are left of can be resumed as long as it is kept. Active comparisons are never deleted.
"""

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from anyio import to_thread

from agent_mux._util.logs import LOGGER
from agent_mux.compare.ledger import LEDGER, PLAN
from agent_mux.errors import AgentMuxError
from agent_mux.service.audit.entries import RETENTION
from agent_mux.service.clock import now_ms
from agent_mux.service.comparisons.registry import ComparisonRegistry


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonRetention:
    """The limits on comparisons that are over, and their enforcement. None: no limit."""

    registry: ComparisonRegistry
    keep_ms: float | None = None
    """Milliseconds to keep a comparison after its last fact."""
    keep_count: int | None = None
    now: Callable[[], int] = now_ms

    @property
    def is_enabled(self) -> bool:
        """Whether any limit is set."""
        return self.keep_ms is not None or self.keep_count is not None

    async def sweep(self) -> int:
        """Delete the comparisons that exceed a limit and return how many. Those that cannot be deleted are logged."""
        removed = 0
        for name in await to_thread.run_sync(lambda: list(self._expired())):
            try:
                await self.registry.delete(name, actor=RETENTION)
            except AgentMuxError as error:
                logging.getLogger(LOGGER).warning("cannot delete the expired comparison %s yet: %s", name, error)
            else:
                removed += 1
        return removed

    def _expired(self) -> Iterator[str]:
        names = [name for name in self.registry.store.ids() if self.registry.live(name) is None]
        for position, name in enumerate(names):  # latest first
            is_above = self.keep_count is not None and position >= self.keep_count
            if is_above or (self.keep_ms is not None and self._last_change(name) < self.now() - self.keep_ms):
                yield name

    def _last_change(self, name: str) -> float:
        """Return when the last fact of a comparison was recorded, in milliseconds since the epoch."""
        folder = self.registry.store.folder(name).path
        for file in (LEDGER, PLAN):
            try:
                return (folder / file).stat().st_mtime * 1000
            except OSError:
                continue
        return self.now()  # it is being created or removed
