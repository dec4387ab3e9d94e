"""The row of a server in its database: a heartbeat, and a fencing number against a second server with the same id.

A server that starts takes the row of its instance and increases its number. Every transaction that changes runs or
webhooks first checks, with a lock on the row, that the number is still that of this server. A server whose row was
taken over can therefore write nothing more, however late it notices. It notices by the next heartbeat.
"""

import logging
import platform
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

import anyio
import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from agent_mux._util.logs import LOGGER
from agent_mux.errors import AgentMuxError
from agent_mux.service.owner import Life, Owner
from agent_mux.service.store.database import Database
from agent_mux.service.store.tables import INSTANCES

HEARTBEAT_INTERVAL = 5.0  # seconds
LEASE = 15.0  # seconds after a transaction in which this server may act without the database


class InstanceRow:
    """The row of one server. Transactions of its stores go through it."""

    def __init__(self, database: Database, instance: str, owner: Owner | None = None) -> None:
        """`instance`: the id of the server, which is a column of all its rows. `owner`: its process."""
        self.database = database
        self.instance = instance
        self.owner = owner
        self._fence = 0
        self._held_at = float("-inf")
        self._is_taken_over = False

    @property
    def holder(self) -> str | None:
        """This server as it is stored."""
        return None if self.owner is None else self.owner.encode()

    @property
    def is_lease_valid(self) -> bool:
        """Whether this server certainly held the row a moment ago, for decisions without the database."""
        return not self._is_taken_over and time.monotonic() < self._held_at + LEASE

    @property
    def is_taken_over(self) -> bool:
        """Whether another server is known to have taken over."""
        return self._is_taken_over

    def require_held(self) -> None:
        """Raise UNAVAILABLE once another server is known to have taken over."""
        if self._is_taken_over:
            raise self._taken_over()

    async def take(self) -> None:
        """Take the row, from the server that held it before, if any.

        Raises UNAVAILABLE, and CONFIG_ERROR when that server works in the same directory.
        """
        began = time.monotonic()
        async with self.database.writing() as connection:
            own, values = INSTANCES.c.instance == self.instance, {"host": platform.node(), "seen_at": _now()}
            taken = INSTANCES.update().where(own).values(fence=INSTANCES.c.fence + 1, **values)
            if not (await connection.execute(taken)).rowcount:
                await connection.execute(INSTANCES.insert().values(instance=self.instance, fence=1, **values))
            self._fence, before = (
                await connection.execute(sa.select(INSTANCES.c.fence, INSTANCES.c.holder).where(own))
            ).one()
            self._refuse_second(Owner.decode(before))
            await connection.execute(INSTANCES.update().where(own).values(holder=self.holder))
        self._held_at = began

    def _refuse_second(self, before: Owner | None) -> None:
        """Raise CONFIG_ERROR when the server that held the row is alive in the same directory."""
        if before is None or self.owner is None or not before.place.is_same(self.owner.place):
            return
        if before.life_for(self.owner) is Life.ALIVE:
            message = (
                f"another `amux serve` (process {before.pid}) uses the same directory, although its lock is gone; stop "
                "it, or give this one its own --config-dir"
            )
            raise AgentMuxError("CONFIG_ERROR", message)

    @asynccontextmanager
    async def writing(self) -> AsyncGenerator[AsyncConnection, None]:
        """Open a transaction of this server. Raises UNAVAILABLE, also if another one has taken over."""
        began = time.monotonic()
        async with self.database.writing() as connection:
            # SQLite has no row locks, and a transaction there has to begin with a write: it could not become one later
            # if another connection has written meanwhile.
            is_held = await self._beat(connection) if self.database.is_sqlite else await self._lock(connection)
            if not is_held:
                await self._require_known(connection)
                self._is_taken_over = True
                raise self._taken_over()
            self._held_at = began
            yield connection

    async def beat(self) -> None:
        """Write that this server is there. Raises UNAVAILABLE, also if another one has taken over."""
        async with self.writing() as connection:
            await self._beat(connection)

    async def run(self, on_taken_over: Callable[[str], Awaitable[None]]) -> None:
        """Write heartbeats until cancelled, or until another server has taken over, then report that."""
        while not self._is_taken_over:
            try:
                await self.beat()
            except AgentMuxError as error:
                logging.getLogger(LOGGER).debug("no heartbeat: %s", error)
            except Exception:  # the driver may raise anything; the service keeps running
                logging.getLogger(LOGGER).exception("no heartbeat")
            if not self._is_taken_over:
                await anyio.sleep(HEARTBEAT_INTERVAL)
        reason = str(self._taken_over())
        logging.getLogger(LOGGER).error("%s", reason)
        await on_taken_over(reason)

    async def _beat(self, connection: AsyncConnection) -> bool:
        held = (INSTANCES.c.instance == self.instance, INSTANCES.c.fence == self._fence)
        done = await connection.execute(INSTANCES.update().where(*held).values(seen_at=_now()))
        return done.rowcount == 1

    async def _require_known(self, connection: AsyncConnection) -> None:
        """Raise UNAVAILABLE if no server has taken over, but the database is another or an earlier one."""
        query = sa.select(INSTANCES.c.fence).where(INSTANCES.c.instance == self.instance)
        fence = await connection.scalar(query)
        if fence is None or fence < self._fence:
            message = (
                f"the database {self.database.shown} has no row of this server (instance {self.instance}), or an "
                "earlier one: it was emptied or exchanged while it was in use; stop the service and restore it from a "
                "backup, or name the earlier database"
            )
            raise AgentMuxError("UNAVAILABLE", message, recoverable=False)

    async def _lock(self, connection: AsyncConnection) -> bool:
        held = (INSTANCES.c.instance == self.instance, INSTANCES.c.fence == self._fence)
        query = sa.select(INSTANCES.c.fence).where(*held).with_for_update(read=True)
        return await connection.scalar(query) is not None

    def _taken_over(self) -> AgentMuxError:
        message = (
            f"another server has taken over the runs of this one (instance {self.instance}); stop one of them, and "
            "give it its own directory with --config-dir"
        )
        return AgentMuxError("UNAVAILABLE", message, recoverable=False)


def _now() -> int:
    return time.time_ns() // 1_000_000
