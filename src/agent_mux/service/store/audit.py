"""Rows of the audit trail. Those of tokens belong to the database, all others to one instance, like runs."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec
import sqlalchemy as sa

from agent_mux.service.store.database import Database
from agent_mux.service.store.runs import storable
from agent_mux.service.store.tables import AUDIT

BATCH_SIZE = 1000  # rows deleted in one transaction


class AuditRow(msgspec.Struct, kw_only=True):
    """One recorded action; see `tables.py`."""

    audit_id: str
    instance: str = ""
    created_at: int
    action: str
    actor: str = ""
    token_id: str = ""
    origin: str
    client: str = ""
    request_id: str = ""
    target_type: str
    target: str
    detail: str = "{}"
    outcome: str | None = None


_COLUMNS = [AUDIT.c[name] for name in AuditRow.__struct_fields__]


class AuditPosition(NamedTuple):
    """The last entry of a page; the next page starts after it."""

    created_at: int
    audit_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditFilter:
    """Which entries to list; None: any. Times are milliseconds since the epoch."""

    actions: tuple[str, ...] = ()
    actor: str | None = None
    target_type: str | None = None
    target: str | None = None
    outcome: str | None = None
    since: int | None = None
    until: int | None = None

    def conditions(self) -> list[sa.ColumnElement[bool]]:
        """Return the filter as SQL conditions."""
        equal = ("actor", "target_type", "target", "outcome")
        values = {name: storable(getattr(self, name)) for name in equal if getattr(self, name) is not None}
        conditions: list[sa.ColumnElement[bool]] = [AUDIT.c[name] == value for name, value in values.items()]
        if self.actions:
            conditions.append(AUDIT.c.action.in_(self.actions))
        if self.since is not None:
            conditions.append(AUDIT.c.created_at >= self.since)
        if self.until is not None:
            conditions.append(AUDIT.c.created_at < self.until)
        return conditions


class AuditStore:
    """The audit trail of one instance and of the database. Calls raise UNAVAILABLE while it is unreachable."""

    def __init__(self, database: Database, instance: str | None) -> None:
        """`instance`: read and delete the entries of this server and of the database only; None: all."""
        self._database = database
        self._instance = instance

    async def add(self, *rows: AuditRow) -> None:
        """Insert entries in one transaction. Those that exist already are skipped."""
        await self._write(*map(insert_audit, rows))

    async def set_outcomes(self, outcomes: Mapping[str, str]) -> None:
        """Set the outcomes of entries by id, in one transaction."""
        table = AUDIT
        await self._write(
            *(table.update().where(table.c.audit_id == id_).values(outcome=one) for id_, one in outcomes.items())
        )

    async def page(
        self, audit_filter: AuditFilter, *, after_position: AuditPosition | None = None, limit: int
    ) -> list[AuditRow]:
        """Return up to `limit` entries that match the filter, latest first."""
        query = sa.select(*_COLUMNS).where(*self._own(), *audit_filter.conditions())
        if after_position is not None:
            position = sa.tuple_(AUDIT.c.created_at, AUDIT.c.audit_id)
            query = query.where(position < sa.tuple_(after_position.created_at, storable(after_position.audit_id)))
        query = query.order_by(AUDIT.c.created_at.desc(), AUDIT.c.audit_id.desc()).limit(limit)
        async with self._database.reading() as connection:
            return [AuditRow(**one) for one in (await connection.execute(query)).mappings()]

    async def delete_expired(self, before: int, most: int) -> int:
        """Delete entries that were created before a time, and the oldest ones beyond `most`; return how many."""
        async with self._database.reading() as connection:
            count = await connection.scalar(sa.select(sa.func.count()).select_from(AUDIT).where(*self._own()))
        removed = await self._delete_oldest(int(count or 0) - most)
        while batch := await self._delete_oldest(BATCH_SIZE, AUDIT.c.created_at < before):
            removed += batch
        return removed

    async def _delete_oldest(self, count: int, *conditions: sa.ColumnElement[bool]) -> int:
        removed = 0
        while count > removed:
            query = sa.select(AUDIT.c.audit_id).where(*self._own(), *conditions)
            oldest = query.order_by(AUDIT.c.created_at, AUDIT.c.audit_id).limit(min(count - removed, BATCH_SIZE))
            async with self._database.writing() as connection:
                # One statement: on SQLite, a transaction that begins by reading fails if another one writes meanwhile.
                deleted = await connection.execute(AUDIT.delete().where(AUDIT.c.audit_id.in_(oldest)))
            removed += deleted.rowcount
            if not deleted.rowcount:
                break
        return removed

    def _own(self) -> tuple[sa.ColumnElement[bool], ...]:
        return () if self._instance is None else (AUDIT.c.instance.in_((self._instance, "")),)

    async def _write(self, *statements: sa.Executable) -> None:
        async with self._database.writing() as connection:
            for statement in statements:
                await connection.execute(statement)


def insert_audit(row: AuditRow) -> sa.Executable:
    """Return a statement that inserts an entry, unless it already exists."""
    values: dict[str, Any] = {name: storable(value) for name, value in msgspec.structs.asdict(row).items()}
    exists = sa.exists().where(AUDIT.c.audit_id == row.audit_id)
    constants = [sa.literal(value, AUDIT.c[name].type).label(name) for name, value in values.items()]
    return AUDIT.insert().from_select(list(values), sa.select(*constants).where(~exists))
