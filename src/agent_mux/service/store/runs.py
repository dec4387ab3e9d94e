"""Rows of runs.

They outlive the server. A service sees only the runs of its own instance; instances may share a database.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec
import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection

from agent_mux._util.sanitize import replace_surrogates
from agent_mux.run.base import TERMINAL_STATES, RunState
from agent_mux.service.store.instances import InstanceRow
from agent_mux.service.store.tables import RUN_TAGS, RUNS

LIVE = tuple(sorted(set(RunState.__args__) - TERMINAL_STATES))  # type: ignore[attr-defined]


class RunRow(msgspec.Struct, kw_only=True):
    """One stored run; see `tables.py`."""

    run_id: str
    created_at: int
    agent: str
    model: str | None = None
    session_id: str | None = None
    state: RunState = "spawned"
    exit_reason: str | None = None
    owner: str = ""
    idempotency_key: str | None = None
    fingerprint: str = ""
    request: str = "{}"
    is_complete: bool = True
    cwd: str = ""
    project_id: str | None = None
    started_at: int | None = None
    ended_at: int | None = None
    event_count: int | None = None
    event_types: str | None = None
    turn_count: int | None = None
    duration_ms: int | None = None
    cost_usd: float | None = None
    error_code: str | None = None
    failed_on: str | None = None
    result: str | None = None
    journal: str | None = None
    journal_bytes: int | None = None
    work_dir: str | None = None
    base_commit: str | None = None
    claimed_by: str | None = None
    tags: tuple[str, ...] = ()

    @property
    def is_over(self) -> bool:
        """Whether the run has ended."""
        return self.state in TERMINAL_STATES


_COLUMNS = [RUNS.c[name] for name in RunRow.__struct_fields__ if name != "tags"]
_LONG = frozenset({"request", "result", "event_types"})
_LISTED = [column for column in _COLUMNS if column.name not in _LONG]
"""The columns of a listing: not those that may be long."""


class EndedRun(NamedTuple):
    """The columns of an ended run that retention needs."""

    run_id: str
    ended_at: int
    journal_bytes: int


class RowChange(NamedTuple):
    """A change of one row."""

    values: Mapping[str, Any] | None
    """Columns to set; None: delete the row."""
    statements: Sequence[sa.Executable] = ()
    """Statements to execute in the same transaction."""


class RunPosition(NamedTuple):
    """The last run of a page; the next page starts after it."""

    created_at: int
    run_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFilter:
    """Which runs to list; None: any. Times are milliseconds since the epoch."""

    agent: str | None = None
    states: tuple[str, ...] = ()
    exit_reason: str | None = None
    model: str | None = None
    session_id: str | None = None
    project_id: str | None = None
    owner: str | None = None
    tags: tuple[str, ...] = ()
    """Runs that have all of these."""
    since: int | None = None
    until: int | None = None

    @property
    def depends_on_state(self) -> bool:
        """Whether the filter uses columns that are written with a delay."""
        return bool(self.states) or any((self.exit_reason, self.model, self.session_id))

    def conditions(self) -> list[sa.ColumnElement[bool]]:
        """Return the filter as SQL conditions."""
        columns = RUNS.c
        equal = {
            name: storable(getattr(self, name))
            for name in ("agent", "exit_reason", "model", "session_id", "project_id", "owner")
            if getattr(self, name) is not None
        }
        conditions: list[sa.ColumnElement[bool]] = [columns[name] == value for name, value in equal.items()]
        if self.states:
            conditions.append(columns.state.in_(self.states))
        if self.since is not None:
            conditions.append(columns.created_at >= self.since)
        if self.until is not None:
            conditions.append(columns.created_at < self.until)
        tags = map(storable, self.tags)
        conditions += [sa.exists().where(RUN_TAGS.c.run_id == columns.run_id, RUN_TAGS.c.tag == tag) for tag in tags]
        return conditions


def storable(value: Any) -> Any:
    """Replace what a database cannot store in text: NUL (PostgreSQL) and unpaired surrogates (both)."""
    if not isinstance(value, str):
        return value
    return replace_surrogates(value.replace("\0", "\ufffd"))


class RunStore:
    """The runs of one instance. Calls raise UNAVAILABLE while the database is unreachable."""

    def __init__(self, own: InstanceRow) -> None:
        """`own`: the row of the instance, which has to be taken before anything is written."""
        self._own = own
        self._database = own.database
        self._instance = own.instance

    @property
    def is_taken_over(self) -> bool:
        """Whether another server is known to have taken over."""
        return self._own.is_taken_over

    @property
    def is_lease_valid(self) -> bool:
        """Whether this server certainly held its runs a moment ago."""
        return self._own.is_lease_valid

    async def add(self, row: RunRow, *statements: sa.Executable) -> bool:
        """Insert a run. Return False when its id or its idempotency key is taken.

        `statements`: executed in the same transaction, here and in `remove`.
        """
        values = {name: storable(value) for name, value in msgspec.structs.asdict(row).items() if name != "tags"}
        values["instance"] = self._instance
        values["claimed_by"] = self._own.holder
        tags = dict.fromkeys(map(storable, row.tags))
        try:
            async with self._own.writing() as connection:
                await connection.execute(RUNS.insert().values(**values))
                if tags:
                    await connection.execute(RUN_TAGS.insert(), [{"run_id": row.run_id, "tag": tag} for tag in tags])
                for statement in statements:
                    await connection.execute(statement)
        except IntegrityError:
            return False
        return True

    async def claim(self, run_id: str, *, is_known: bool = True) -> bool:
        """Claim the start of a run for this server. Return False if it is not this server's to start, or is over.

        `is_known`: this server inserted it, or has claimed it before; otherwise it was claimed by the server before.
        """
        mine = RUNS.c.claimed_by == self._own.holder if is_known and self._own.holder is not None else sa.true()
        claimed = RUNS.update().where(*self._row_conditions(run_id), RUNS.c.state == "spawned", mine)
        async with self._own.writing() as connection:
            done = await connection.execute(claimed.values(claimed_by=self._own.holder))
        return done.rowcount == 1

    async def oldest(self, limit: int) -> list[EndedRun]:
        """Return the runs that ended first."""
        query = sa.select(RUNS.c.run_id, RUNS.c.ended_at, sa.func.coalesce(RUNS.c.journal_bytes, 0))
        ended = query.where(*self._ended_conditions()).order_by(RUNS.c.ended_at, RUNS.c.run_id).limit(limit)
        async with self._database.reading() as connection:
            return [EndedRun(*row) for row in await connection.execute(ended)]

    async def totals(self) -> tuple[int, int]:
        """Return the number of ended runs and the total bytes of their journals."""
        size = sa.func.coalesce(sa.func.sum(RUNS.c.journal_bytes), 0)
        async with self._database.reading() as connection:
            row = await connection.execute(sa.select(sa.func.count(), size).where(*self._ended_conditions()))
            count, size = row.one()
        return int(count), int(size)

    def _ended_conditions(self) -> tuple[sa.ColumnElement[bool], ...]:
        return RUNS.c.instance == self._instance, RUNS.c.ended_at.is_not(None)

    async def write(self, changes: Mapping[str, RowChange]) -> None:
        """Update or delete runs in one transaction. Missing rows are not created."""
        async with self._own.writing() as connection:
            for run_id, (values, statements) in changes.items():
                if values is None:
                    await self._remove(connection, [run_id])
                elif values:
                    row = {name: storable(value) for name, value in values.items()}
                    await connection.execute(RUNS.update().where(*self._row_conditions(run_id)).values(**row))
                for statement in statements:
                    await connection.execute(statement)

    async def get(self, run_id: str) -> RunRow | None:
        """Return one run, None if it does not exist."""
        return await self._one(*self._row_conditions(run_id))

    async def find_by_key(self, owner: str, idempotency_key: str) -> RunRow | None:
        """Return the run that the owner created with this idempotency key."""
        own_runs = (RUNS.c.instance == self._instance, RUNS.c.owner == storable(owner))
        return await self._one(*own_runs, RUNS.c.idempotency_key == storable(idempotency_key))

    async def page(
        self, run_filter: RunFilter, *, after_position: RunPosition | None = None, limit: int
    ) -> list[RunRow]:
        """Return up to `limit` runs that match the filter, latest first, without their requests and results."""
        return await self._select(self.page_statement(run_filter, after_position=after_position, limit=limit))

    def page_statement(
        self, run_filter: RunFilter, *, after_position: RunPosition | None, limit: int
    ) -> sa.Select[Any]:
        """Return the query of `page`."""
        conditions = [RUNS.c.instance == self._instance, *run_filter.conditions()]
        if after_position is not None:
            conditions.append(
                sa.tuple_(RUNS.c.created_at, RUNS.c.run_id)
                < sa.tuple_(after_position.created_at, storable(after_position.run_id))
            )
        order = (RUNS.c.created_at.desc(), RUNS.c.run_id.desc())
        return sa.select(*_LISTED).where(*conditions).order_by(*order).limit(limit)

    async def unfinished(self) -> Sequence[RunRow]:
        """Return the runs that had not ended at the last write, in order of creation."""
        own_runs = RUNS.c.instance == self._instance
        query = sa.select(*_COLUMNS).where(own_runs, RUNS.c.state.in_(LIVE)).order_by(RUNS.c.created_at, RUNS.c.run_id)
        return await self._select(query)

    async def remove(self, run_ids: Sequence[str], *statements: sa.Executable) -> None:
        """Delete runs together with their tags."""
        async with self._own.writing() as connection:
            await self._remove(connection, run_ids)
            for statement in statements:
                await connection.execute(statement)

    async def _remove(self, connection: AsyncConnection, run_ids: Sequence[str]) -> None:
        own_runs = sa.select(RUNS.c.run_id).where(RUNS.c.instance == self._instance, RUNS.c.run_id.in_(run_ids))
        await connection.execute(RUN_TAGS.delete().where(RUN_TAGS.c.run_id.in_(own_runs)))
        await connection.execute(RUNS.delete().where(RUNS.c.instance == self._instance, RUNS.c.run_id.in_(run_ids)))

    def _row_conditions(self, run_id: str) -> tuple[sa.ColumnElement[bool], ...]:
        return RUNS.c.instance == self._instance, RUNS.c.run_id == storable(run_id)

    async def _one(self, *conditions: sa.ColumnElement[bool]) -> RunRow | None:
        rows = await self._select(sa.select(*_COLUMNS).where(*conditions))
        return rows[0] if rows else None

    async def _select(self, statement: sa.Select[Any]) -> list[RunRow]:
        async with self._database.reading() as connection:
            row = (await connection.execute(statement)).mappings().all()
            ids = [one["run_id"] for one in row]
            tags: dict[str, list[str]] = {}
            if ids:
                pairs = sa.select(RUN_TAGS).where(RUN_TAGS.c.run_id.in_(ids)).order_by(RUN_TAGS.c.tag)
                for run_id, tag in await connection.execute(pairs):
                    tags.setdefault(run_id, []).append(tag)
        return [RunRow(**one, tags=tuple(tags.get(one["run_id"], ()))) for one in row]
