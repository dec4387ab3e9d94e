"""Rows of webhooks and of their deliveries. They belong to one instance, like those of runs."""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import msgspec
import sqlalchemy as sa

from agent_mux.service.store.database import Database
from agent_mux.service.store.tables import WEBHOOK_DELIVERIES, WEBHOOKS

DeliveryState = Literal["pending", "delivered", "failed"]
_LISTS = ("events", "agents", "tags")


class WebhookRow(msgspec.Struct, kw_only=True):
    """One stored webhook; see `tables.py`."""

    webhook_id: str
    created_at: int
    url: str
    description: str | None = None
    events: tuple[str, ...]
    agents: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    is_enabled: bool = True
    disabled_reason: str | None = None
    secret: str
    previous_secret: str | None = None
    previous_until: int | None = None

    def __repr__(self) -> str:
        return f"<WebhookRow {self.webhook_id}>"  # without the secrets


class DeliveryRow(msgspec.Struct, kw_only=True):
    """One message to one webhook."""

    delivery_id: str
    webhook_id: str
    created_at: int
    type: str
    run_id: str | None = None
    body: str
    state: DeliveryState = "pending"
    attempts: int = 0
    next_at: int = 0
    last_at: int | None = None
    last_status: int | None = None
    last_error: str | None = None


class DeliveryPosition(NamedTuple):
    """The last delivery of a page; the next page starts after it."""

    created_at: int
    delivery_id: str


_WEBHOOK = [WEBHOOKS.c[name] for name in WebhookRow.__struct_fields__]
_DELIVERY = [WEBHOOK_DELIVERIES.c[name] for name in DeliveryRow.__struct_fields__]


class WebhookStore:
    """The webhooks of one instance. Calls raise UNAVAILABLE while the database is unreachable."""

    def __init__(self, database: Database, instance: str) -> None:
        self._database = database
        self._instance = instance

    async def all(self) -> list[WebhookRow]:
        """Return every webhook in order of creation."""
        query = sa.select(*_WEBHOOK).where(WEBHOOKS.c.instance == self._instance)
        async with self._database.reading() as connection:
            found = await connection.execute(query.order_by(WEBHOOKS.c.created_at, WEBHOOKS.c.webhook_id))
            return [_webhook_row(dict(one)) for one in found.mappings()]

    async def add(self, row: WebhookRow, *statements: sa.Executable) -> None:
        """Insert a webhook of this instance. `statements`: for the same transaction, as below."""
        values = _encoded_lists({**msgspec.structs.asdict(row), "instance": self._instance})
        await self._write(WEBHOOKS.insert().values(**values), *statements)

    async def change(self, webhook_id: str, values: Mapping[str, Any], *statements: sa.Executable) -> None:
        """Update columns of a webhook."""
        change = WEBHOOKS.update().where(WEBHOOKS.c.webhook_id == webhook_id).values(**_encoded_lists(values))
        await self._write(change, *statements)

    async def remove(self, webhook_id: str, *statements: sa.Executable) -> None:
        """Delete a webhook with its deliveries."""
        await self._write(
            WEBHOOK_DELIVERIES.delete().where(WEBHOOK_DELIVERIES.c.webhook_id == webhook_id),
            WEBHOOKS.delete().where(WEBHOOKS.c.webhook_id == webhook_id),
            *statements,
        )

    # -- deliveries

    async def add_delivery(self, row: DeliveryRow, *statements: sa.Executable) -> None:
        """Insert a message to be delivered."""
        await self._write(insert_delivery(row), *statements)

    async def next_deliveries(self, webhook_id: str, limit: int) -> list[DeliveryRow]:
        """Return pending deliveries in order of their due time."""
        table = WEBHOOK_DELIVERIES.c
        query = sa.select(*_DELIVERY).where(table.webhook_id == webhook_id, table.state == "pending")
        return await self._deliveries(query.order_by(table.next_at, table.delivery_id).limit(limit))

    async def page(
        self, webhook_id: str, *, state: str | None = None, after_position: DeliveryPosition | None = None, limit: int
    ) -> list[DeliveryRow]:
        """Return up to `limit` deliveries, latest first."""
        table = WEBHOOK_DELIVERIES.c
        query = sa.select(*_DELIVERY).where(table.webhook_id == webhook_id)
        if state is not None:
            query = query.where(table.state == state)
        if after_position is not None:
            query = query.where(sa.tuple_(table.created_at, table.delivery_id) < sa.tuple_(*after_position))
        return await self._deliveries(query.order_by(table.created_at.desc(), table.delivery_id.desc()).limit(limit))

    async def change_delivery(self, delivery_id: str, values: Mapping[str, Any]) -> None:
        """Update columns of a delivery."""
        table = WEBHOOK_DELIVERIES
        await self._write(table.update().where(table.c.delivery_id == delivery_id).values(**values))

    async def fail_pending(self, webhook_id: str, reason: str) -> None:
        """Mark all pending deliveries of a webhook as failed. `why`: stored as their error."""
        table = WEBHOOK_DELIVERIES
        pending = table.update().where(table.c.webhook_id == webhook_id, table.c.state == "pending")
        await self._write(pending.values(state="failed", last_error=reason))

    async def delete_before(self, time: int) -> None:
        """Delete finished deliveries created before a time in milliseconds since the epoch."""
        table = WEBHOOK_DELIVERIES
        own_webhooks = sa.select(WEBHOOKS.c.webhook_id).where(WEBHOOKS.c.instance == self._instance)
        old = table.c.state != "pending", table.c.created_at < time, table.c.webhook_id.in_(own_webhooks)
        await self._write(table.delete().where(*old))

    async def _deliveries(self, statement: sa.Select[Any]) -> list[DeliveryRow]:
        async with self._database.reading() as connection:
            return [DeliveryRow(**one) for one in (await connection.execute(statement)).mappings()]

    async def _write(self, *statements: sa.Executable) -> None:
        async with self._database.writing() as connection:
            for statement in statements:
                await connection.execute(statement)


def insert_delivery(row: DeliveryRow) -> sa.Executable:
    """Return a statement that inserts a delivery, unless it already exists or its webhook does not."""
    table = WEBHOOK_DELIVERIES
    values = msgspec.structs.asdict(row)
    exists = sa.exists().where(table.c.delivery_id == row.delivery_id)
    constants = [sa.literal(value, table.c[name].type).label(name) for name, value in values.items()]
    new = sa.select(*constants).select_from(WEBHOOKS).where(WEBHOOKS.c.webhook_id == row.webhook_id, ~exists)
    return table.insert().from_select(list(values), new)


def _encoded_lists(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: msgspec.json.encode(value).decode() if name in _LISTS else value for name, value in values.items()}


def _webhook_row(columns: Mapping[str, Any]) -> WebhookRow:
    lists = {name: tuple(msgspec.json.decode(columns[name])) for name in _LISTS}
    return WebhookRow(**{**columns, **lists})
