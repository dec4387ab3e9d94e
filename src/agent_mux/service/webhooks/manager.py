"""The webhooks of a service, and the messages that runs cause. An observer of runs.

The list of webhooks is small and kept in memory, so that runs that no webhook matches cost nothing. A message is
written in the transaction of the change that it reports, and sent from the database.
"""

import hashlib
import logging
import secrets
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

import anyio
import anyio.abc

from agent_mux._util.logs import LOGGER
from agent_mux._util.sanitize import to_json
from agent_mux._util.ulids import new_ulid
from agent_mux.errors import AgentMuxError
from agent_mux.sdk.interactions import PendingInteraction
from agent_mux.service.audit.trail import Recording, unrecorded
from agent_mux.service.clock import now_ms
from agent_mux.service.metrics import Metrics
from agent_mux.service.runs.live import OutboxEntry
from agent_mux.service.store.runs import RunRow
from agent_mux.service.store.webhooks import DeliveryRow, WebhookRow, WebhookStore, insert_delivery
from agent_mux.service.views import RunView, pending_view
from agent_mux.service.webhooks.delivery import DeliveryWorker
from agent_mux.service.webhooks.schemas import APPROVAL, ENDED, EVENTS, INPUT, STARTED, TEST
from agent_mux.service.webhooks.sender import WebhookSender
from agent_mux.webhooks import new_secret

MAX_WEBHOOKS = 50
DELIVERY_RETENTION = 7 * 24 * 3600 * 1000  # milliseconds that deliveries are kept
CLEANUP_INTERVAL = 3600.0  # seconds
GONE = "the receiver answered 410 Gone"


class WebhookManager:
    """The webhooks of this instance."""

    def __init__(
        self, store: WebhookStore, tasks: anyio.abc.TaskGroup, metrics: Metrics, *, allow_private: bool = False
    ) -> None:
        """`tasks`: lives as long as the service. `allow_private`: receivers may be in private networks."""
        self.store = store
        self.allow_private = allow_private
        self._tasks = tasks
        self._metrics = metrics
        self._sender = WebhookSender(allow_private=allow_private)
        self._rows: dict[str, WebhookRow] = {}
        self._workers: dict[str, DeliveryWorker] = {}

    async def open(self) -> None:
        """Read the webhooks and start their workers. Raises UNAVAILABLE without a database."""
        for row in await self.store.all():
            self._rows[row.webhook_id] = row
            self._start_worker(row)
        self._tasks.start_soon(self._clean_up)

    def stop(self) -> None:
        """Send nothing more. Messages that are due stay in the database, for the server that has taken over."""
        for webhook_id in list(self._workers):
            self._stop_worker(webhook_id)

    # -- the list

    def all(self) -> list[WebhookRow]:
        """Return every webhook in order of creation."""
        return list(self._rows.values())

    def get(self, webhook_id: str) -> WebhookRow:
        """Return one webhook. Raises NOT_FOUND."""
        row = self._rows.get(webhook_id)
        if row is None:
            raise AgentMuxError("NOT_FOUND", f"no webhook {webhook_id}; list webhooks with GET /v1/webhooks")
        return row

    async def create(
        self, values: Mapping[str, Any], secret: str | None = None, *, recording: Recording = unrecorded
    ) -> WebhookRow:
        """Create a webhook. `values`: columns. `recording`: for the audit trail, as below. Raises LIMIT_EXCEEDED."""
        if len(self._rows) >= MAX_WEBHOOKS:
            raise AgentMuxError("LIMIT_EXCEEDED", f"the limit of {MAX_WEBHOOKS} webhooks is reached; delete one first")
        columns = {"events": EVENTS, **values}
        row = WebhookRow(webhook_id=new_ulid(), created_at=now_ms(), secret=secret or new_secret(), **columns)
        self._rows[row.webhook_id] = row
        try:
            await self.store.add(row, *recording(row.webhook_id))
        except BaseException:
            del self._rows[row.webhook_id]
            raise
        self._start_worker(row)
        return row

    async def change(
        self, webhook_id: str, values: Mapping[str, Any], *, recording: Recording = unrecorded
    ) -> WebhookRow:
        """Change columns; a disabled webhook loses its pending deliveries. Raises NOT_FOUND."""
        row = self.get(webhook_id)
        columns = dict(values)
        if "is_enabled" in columns:
            columns.setdefault("disabled_reason", None)
        if columns:
            await self.store.change(webhook_id, columns, *recording(webhook_id))
        for name, value in columns.items():
            setattr(row, name, value)
        if not row.is_enabled:
            await self.store.fail_pending(webhook_id, row.disabled_reason or "the webhook was disabled")
            self._stop_worker(webhook_id)  # last: the caller may be the worker itself
        elif webhook_id not in self._workers:
            self._start_worker(row)
        return row

    async def rotate(
        self, webhook_id: str, overlap: int, secret: str | None = None, *, recording: Recording = unrecorded
    ) -> WebhookRow:
        """Replace the secret; the old one signs, too, for `overlap` milliseconds. Raises NOT_FOUND."""
        row = self.get(webhook_id)
        return await self.change(
            webhook_id,
            {
                "secret": secret or new_secret(),
                "previous_secret": row.secret if overlap > 0 else None,
                "previous_until": now_ms() + overlap if overlap > 0 else None,
            },
            recording=recording,
        )

    async def remove(self, webhook_id: str, *, recording: Recording = unrecorded) -> None:
        """Delete a webhook with its pending deliveries. Raises NOT_FOUND."""
        self.get(webhook_id)
        await self.store.remove(webhook_id, *recording(webhook_id))
        self._stop_worker(webhook_id)
        self._rows.pop(webhook_id, None)

    async def test(self, webhook_id: str, *, recording: Recording = unrecorded) -> DeliveryRow:
        """Send a test message. Raises NOT_FOUND, and INVALID_STATE_TRANSITION for a disabled webhook."""
        if not self.get(webhook_id).is_enabled:
            raise AgentMuxError("INVALID_STATE_TRANSITION", f"webhook {webhook_id} is disabled; enable it first")
        now = now_ms()
        body = to_json({"type": TEST, "timestamp": iso(now), "data": {"webhookId": webhook_id}})
        id_ = f"msg_{secrets.token_hex(16)}"
        row = DeliveryRow(delivery_id=id_, webhook_id=webhook_id, created_at=now, type=TEST, body=body, next_at=now)
        await self.store.add_delivery(row, *recording(webhook_id))
        self._wake(webhook_id)
        return row

    # -- run events

    def started(self, row: RunRow, view: RunView) -> Iterable[OutboxEntry]:
        """Return the entries for `run.started`."""
        return self._outbox_entries(STARTED, row, view, row.started_at or now_ms())

    def interaction_requested(self, row: RunRow, view: RunView, pending: PendingInteraction) -> Iterable[OutboxEntry]:
        """Return the entries for `run.approval_request` or `run.input_required`."""
        type_ = APPROVAL if pending.type == "approval" else INPUT
        return self._outbox_entries(type_, row, view, pending.created_at, pending)

    def ended(self, row: RunRow, view: RunView, events: Mapping[str, int]) -> Iterable[OutboxEntry]:  # noqa: ARG002
        """Return the entries for `run.ended`."""
        return self._outbox_entries(ENDED, row, view, row.ended_at or now_ms())

    def _outbox_entries(
        self, type_: str, row: RunRow, view: RunView, when: int, pending: PendingInteraction | None = None
    ) -> list[OutboxEntry]:
        receivers = [one for one in self._rows.values() if _matches(one, type_, row)]
        if not receivers:
            return []
        data = {"run": view, **({} if pending is None else {"interaction": pending_view(pending)})}
        body = to_json({"type": type_, "timestamp": iso(when), "data": data})
        subject = f"{row.run_id}/{type_}/{pending.id if pending else ''}"
        return [self._outbox_entry(one.webhook_id, subject, DeliveryRow(
            delivery_id="", webhook_id=one.webhook_id, created_at=now_ms(), type=type_, run_id=row.run_id, body=body,
        )) for one in receivers]  # fmt: skip

    def _outbox_entry(self, webhook_id: str, subject: str, row: DeliveryRow) -> OutboxEntry:
        """Return the entry for a message.

        Its id is derived from the subject, so that receivers recognise repetitions.
        """
        row.delivery_id = "msg_" + hashlib.sha256(f"{webhook_id}/{subject}".encode()).hexdigest()[:32]
        return OutboxEntry(insert_delivery(row), lambda: self._wake(webhook_id))

    # -- delivery

    def _start_worker(self, row: WebhookRow) -> None:
        if row.is_enabled:
            worker = DeliveryWorker(row, self.store, self._sender, self._metrics, self._disable_gone)
            self._workers[row.webhook_id] = worker
            self._tasks.start_soon(worker.run)

    def _stop_worker(self, webhook_id: str) -> None:
        worker = self._workers.pop(webhook_id, None)
        if worker is not None:
            worker.scope.cancel()

    def _wake(self, webhook_id: str) -> None:
        worker = self._workers.get(webhook_id)
        if worker is not None:
            worker.wake()

    async def _disable_gone(self, webhook_id: str) -> None:
        if webhook_id in self._rows:
            await self.change(webhook_id, {"is_enabled": False, "disabled_reason": GONE})

    async def _clean_up(self) -> None:
        while True:
            try:
                await self.store.delete_before(now_ms() - DELIVERY_RETENTION)
                for row in self.all():
                    if row.previous_until is not None and row.previous_until < now_ms():
                        await self.change(row.webhook_id, {"previous_secret": None, "previous_until": None})
            except AgentMuxError as error:
                logging.getLogger(LOGGER).warning("cannot delete old webhook deliveries yet: %s", error)
            await anyio.sleep(CLEANUP_INTERVAL)


def _matches(webhook: WebhookRow, type_: str, run: RunRow) -> bool:
    return (
        webhook.is_enabled
        and type_ in webhook.events
        and (not webhook.agents or run.agent in webhook.agents)
        and set(webhook.tags) <= set(run.tags)
    )


def iso(ms: int) -> str:
    """Format milliseconds since the epoch as ISO 8601 in UTC."""
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
