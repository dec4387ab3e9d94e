"""Deletes ended runs and comparisons that exceed the configured age, number or total journal size.

The runs that ended first are deleted first, rows and journals together, a few at a time in the background. Without
limits nothing is deleted. Journals without a row are never touched: `amux run` of the same user writes to the same
directory.
"""

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Self

import anyio

from agent_mux._util.logs import LOGGER
from agent_mux.errors import AgentMuxError, FieldError, ValidationError
from agent_mux.service.clock import now_ms
from agent_mux.service.settings import ServiceSettings
from agent_mux.service.store.runs import EndedRun, RunStore

SWEEP_INTERVAL = 60.0  # seconds
BATCH_SIZE = 50  # runs deleted in one transaction
DAY = 86_400_000  # milliseconds

LIMITS = ("keep_days", "keep_runs", "keep_bytes", "keep_comparisons")
"""The limits in the settings of a service."""

DeleteRuns = Callable[[Sequence[str]], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """The limits on ended runs, and their enforcement. None: no limit."""

    store: RunStore
    delete_runs: DeleteRuns
    keep_ms: float | None = None
    """Milliseconds to keep a run after its end."""
    keep_runs: int | None = None
    keep_bytes: int | None = None
    """Total bytes of journals."""
    now: Callable[[], int] = now_ms

    @classmethod
    def from_settings(cls, settings: ServiceSettings, store: RunStore, delete_runs: DeleteRuns) -> Self:
        """Build it from the service's settings. Raises `ValidationError` for limits below 0."""
        limits = {name: getattr(settings, name) for name in LIMITS}
        wrong = [
            FieldError(name, limit, "a number >= 0, or None") for name, limit in limits.items() if not _is_limit(limit)
        ]
        if wrong:
            raise ValidationError(wrong)
        return cls(
            store=store,
            delete_runs=delete_runs,
            keep_ms=None if settings.keep_days is None else settings.keep_days * DAY,
            keep_runs=settings.keep_runs,
            keep_bytes=settings.keep_bytes,
        )

    @property
    def is_enabled(self) -> bool:
        """Whether any limit is set."""
        return any(limit is not None for limit in (self.keep_ms, self.keep_runs, self.keep_bytes))

    async def sweep(self) -> int:
        """Delete the runs that exceed a limit and return how many. Raises UNAVAILABLE without the database."""
        count, size = await self.store.totals()
        removed = 0
        while True:
            oldest = await self.store.oldest(BATCH_SIZE)
            expired = []
            for run in oldest:
                if not (self._is_too_old(run) or _is_above(count, self.keep_runs) or _is_above(size, self.keep_bytes)):
                    break
                expired.append(run.run_id)
                count, size = count - 1, size - run.journal_bytes
            if not expired:
                return removed
            await self.delete_runs(expired)
            removed += len(expired)

    def _is_too_old(self, run: EndedRun) -> bool:
        return self.keep_ms is not None and run.ended_at < self.now() - self.keep_ms


async def sweep_regularly(sweep: Callable[[], Awaitable[int]], wait_recovered: Callable[[], Awaitable[object]]) -> None:
    """Sweep at regular intervals until cancelled, the first time after `wait_recovered`."""
    await wait_recovered()
    while True:
        try:
            await sweep()
        except AgentMuxError as error:
            logging.getLogger(LOGGER).warning("cannot delete what is expired yet: %s", error)
        except Exception:  # the driver may raise anything; the service keeps running
            logging.getLogger(LOGGER).exception("cannot delete what is expired yet")
        await anyio.sleep(SWEEP_INTERVAL)


def _is_above(present: int, limit: int | None) -> bool:
    return limit is not None and present > limit


def _is_limit(limit: float | None) -> bool:
    return limit is None or (not isinstance(limit, bool) and 0 <= limit < float("inf"))
