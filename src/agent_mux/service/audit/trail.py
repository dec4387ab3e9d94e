"""The audit trail of a service.

What a caller does is recorded before it is carried out, or in the transaction that carries it out, so that a crash
loses no entry. The outcome follows; an entry without one belongs to an action that a crash interrupted.

While the database is unavailable, runs stay controllable: their entries go to a file on the local disk (see `spool`),
and to the database later. If neither can be written, an action is refused, unless it only restrains an agent.
"""

import errno
import logging
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import anyio
import sqlalchemy as sa
from anyio import to_thread

from agent_mux._util.logs import LOGGER
from agent_mux.errors import AgentMuxError
from agent_mux.service.audit.entries import RESTRAINING, Action, Actor, TargetType, new_entry
from agent_mux.service.audit.spool import AuditSpool
from agent_mux.service.clock import now_ms
from agent_mux.service.store.audit import AuditFilter, AuditPosition, AuditRow, AuditStore, insert_audit

OK = "ok"
RECORD_TIMEOUT = 2.0  # seconds until an entry goes to the spool
FLUSH_INTERVAL = 1.0  # seconds between two attempts to move the spool to the database
SWEEP_INTERVAL = 3600.0  # seconds
MAX_ENTRIES = 1_000_000
"""Entries that are kept; at about 400 bytes each."""
MAX_SPOOLED = 100_000
"""Entries that may wait for the database."""
MAX_PENDING_OUTCOMES = 10_000
DAY = 86_400_000  # milliseconds

Recording = Callable[[str], Sequence[sa.Executable]]
"""Return the statements that record a change of the object with this id, for the transaction of the change."""


def unrecorded(_: str) -> Sequence[sa.Executable]:
    """Record nothing: a change that nobody asked for."""
    return ()


class AuditTrail:
    """The audit trail of one instance."""

    def __init__(self, store: AuditStore, spool: AuditSpool, instance: str, *, keep_days: float) -> None:
        """`instance`: the server whose actions are recorded. `keep_days`: age at which entries are deleted."""
        self._store = store
        self._spool = spool
        self._instance = instance
        self._keep_ms = int(keep_days * DAY)
        self._spooled: list[AuditRow] = []
        self._outcomes: dict[str, str] = {}
        """Outcomes that are not in the database yet, by entry."""
        self._added = anyio.Event()
        self._writing = anyio.Lock()
        """Held while the spool is written."""
        self._flushing = anyio.Lock()
        self._is_away = False
        """Whether the database was unavailable at the last attempt."""

    async def open(self) -> None:
        """Read the entries that an earlier server could not write to the database. Raises `OSError`."""
        self._spooled = await to_thread.run_sync(self._spool.read)

    async def run(self) -> None:
        """Move spooled entries to the database and delete expired ones, until cancelled."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._sweep)
            while True:
                if not await self._flush():
                    await anyio.sleep(FLUSH_INTERVAL)
                    continue
                await self._added.wait()
                self._added = anyio.Event()

    async def close(self) -> None:
        """Move what is left to the database, if it is available; the next server does it otherwise."""
        with anyio.move_on_after(RECORD_TIMEOUT):
            await self._flush()

    async def page(
        self, audit_filter: AuditFilter, *, after_position: AuditPosition | None, limit: int
    ) -> list[AuditRow]:
        """Return up to `limit` entries that match the filter, latest first. Raises UNAVAILABLE."""
        with anyio.move_on_after(RECORD_TIMEOUT):
            await self._flush()
        return await self._store.page(audit_filter, after_position=after_position, limit=limit)

    # -- recording

    def recording(self, actor: Actor, action: Action, target_type: TargetType, **detail: Any) -> Recording:
        """Return what records a successful action in its own transaction."""

        def statements(target: str) -> Sequence[sa.Executable]:
            return (insert_audit(self.entry(actor, action, target_type, target, detail, OK)),)

        return statements

    @asynccontextmanager
    async def recorded(
        self, actor: Actor, action: Action, target_type: TargetType, target: str, **detail: Any
    ) -> AsyncGenerator[None, None]:
        """Record an action before the block carries it out, and its outcome at the end of the block.

        Raises UNAVAILABLE, before the block, if it cannot be recorded.
        """
        row = self.entry(actor, action, target_type, target, detail, None)
        with anyio.CancelScope(shield=True):  # a client that leaves must not leave an entry without its action
            await self._record(row, action)
        outcome = "INTERNAL"
        try:
            yield
            outcome = OK
        except AgentMuxError as error:
            outcome = error.code
            raise
        except anyio.get_cancelled_exc_class():
            outcome = "ABORTED"
            raise
        finally:
            self.finish(row, outcome)

    def entry(  # noqa: PLR0913, PLR0917  # one for each column
        self,
        actor: Actor,
        action: Action,
        target_type: TargetType,
        target: str,
        detail: Mapping[str, Any],
        outcome: str | None,
    ) -> AuditRow:
        """Return an entry of this server. `outcome`: None until it is known."""
        return new_entry(actor, action, target_type, target, detail, instance=self._instance, outcome=outcome)

    async def _record(self, row: AuditRow, action: Action) -> None:
        if not self._spooled and await self._stored(row):
            return
        async with self._writing:
            try:
                await self._spool_row(row)
            except OSError as error:
                reason = f"cannot record {action} of {row.target} in the audit trail: {error.strerror or error}"
                if action not in RESTRAINING:
                    advice = "free disk space or restore the database, then try again"
                    raise AgentMuxError("UNAVAILABLE", f"{reason}; {advice}") from error
                logging.getLogger(LOGGER).error("%s; it is kept in memory only", reason)  # noqa: TRY400  # one line
            self._spooled.append(row)
            self._added.set()

    async def _spool_row(self, row: AuditRow) -> None:
        if len(self._spooled) >= MAX_SPOOLED:
            raise OSError(errno.ENOSPC, "too many entries wait for the database")
        await to_thread.run_sync(self._spool.append, row)

    def finish(self, row: AuditRow, outcome: str) -> None:
        """Record the outcome of an action soon: its response does not wait for that."""
        row.outcome = outcome
        self._outcomes[row.audit_id] = outcome
        while len(self._outcomes) > MAX_PENDING_OUTCOMES:
            self._outcomes.pop(next(iter(self._outcomes)))
        self._added.set()

    async def _stored(self, row: AuditRow) -> bool:
        """Return whether an entry was written to the database in time."""
        try:
            with anyio.move_on_after(RECORD_TIMEOUT) as scope:
                await self._store.add(row)
        except AgentMuxError as error:
            self._warn(error)
            return False
        return not scope.cancelled_caught

    def _warn(self, error: AgentMuxError) -> None:
        """Log that the database is unavailable, once until it is available again."""
        if not self._is_away:
            logging.getLogger(LOGGER).warning("the audit trail is kept in %s: %s", self._spool.path, error)
        self._is_away = True

    # -- in the background

    async def _flush(self) -> bool:
        """Write spooled entries and outcomes to the database, if there are any. Return whether that succeeded."""
        async with self._flushing:
            rows, outcomes = list(self._spooled), dict(self._outcomes)
            if not rows and not outcomes:
                return True
            try:
                await self._store.add(*rows)
                await self._store.set_outcomes(outcomes)
                if rows:
                    await self._shorten_spool(len(rows))
            except AgentMuxError as error:
                self._warn(error)
                return False
            except OSError as error:  # the entries are in the database; writing them again changes nothing
                logging.getLogger(LOGGER).warning("cannot shorten %s: %s", self._spool.path, error)
                return False
            for id_ in outcomes:
                self._outcomes.pop(id_, None)
            self._is_away = False
            return True

    async def _shorten_spool(self, count: int) -> None:
        async with self._writing:
            left = self._spooled[count:]
            await to_thread.run_sync(self._spool.replace, left)
            self._spooled = left

    async def _sweep(self) -> None:
        while True:
            try:
                await self._store.delete_expired(now_ms() - self._keep_ms, MAX_ENTRIES)
            except AgentMuxError as error:
                logging.getLogger(LOGGER).warning("cannot delete expired entries of the audit trail yet: %s", error)
            await anyio.sleep(SWEEP_INTERVAL)
