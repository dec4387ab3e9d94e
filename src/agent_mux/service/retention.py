"""Runs that are over are forgotten at some time, where that is wanted: by their age, their number, their size.

Those that ended first go first, rows and journals together, a few at a time and behind everything else. By default
nothing is ever removed. Journals that no row knows are never touched: `amux run` of the same user writes there, too.
"""

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Self

import anyio

from agent_mux._util.logs import LOGGER
from agent_mux.errors import AgentMuxError, FieldError, ValidationError
from agent_mux.service.runs.live import now_ms
from agent_mux.service.settings import ServiceSettings
from agent_mux.service.store.runs import EndedRun, RunStore

SWEEP_INTERVAL = 60.0  # seconds
BATCH_SIZE = 50  # runs that are removed in one transaction
DAY = 86_400_000  # milliseconds

DeleteRuns = Callable[[Sequence[str]], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """What is kept; None: everything."""

    store: RunStore
    delete_runs: DeleteRuns
    keep_ms: float | None = None
    """After the end of a run."""
    keep_runs: int | None = None
    keep_bytes: int | None = None
    """Of journals, together."""
    now: Callable[[], int] = now_ms

    @classmethod
    def from_settings(cls, settings: ServiceSettings, store: RunStore, delete_runs: DeleteRuns) -> Self:
        """As the settings say. Raises `ValidationError` for limits below 0."""
        limits = {name: getattr(settings, name) for name in ("keep_days", "keep_runs", "keep_bytes")}
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
        """There is a limit."""
        return any(limit is not None for limit in (self.keep_ms, self.keep_runs, self.keep_bytes))

    async def run(self) -> None:
        """Sweep now and then, until cancelled."""
        while True:
            try:
                await self.sweep()
            except AgentMuxError as error:
                logging.getLogger(LOGGER).warning("runs that are too many are not removed yet: %s", error)
            except Exception:  # whatever the driver raises: the service goes on
                logging.getLogger(LOGGER).exception("runs that are too many are not removed yet")
            await anyio.sleep(SWEEP_INTERVAL)

    async def sweep(self) -> int:
        """Forget what is too old or too much. Gives how many that were. Raises UNAVAILABLE without the database."""
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


def _is_above(present: int, limit: int | None) -> bool:
    return limit is not None and present > limit


def _is_limit(limit: float | None) -> bool:
    return limit is None or (not isinstance(limit, bool) and 0 <= limit < float("inf"))
