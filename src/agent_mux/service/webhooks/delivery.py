"""Delivers messages to webhooks: a stored message is retried until it is delivered or the attempts are used up.

Each webhook has its own worker with a few concurrent attempts, so that a slow receiver delays no other. A message that
was being sent when the server was killed is sent again with the same id: delivery is at least once.
"""

import logging
import random
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import anyio.abc

from agent_mux._util.logs import LOGGER
from agent_mux.errors import AgentMuxError
from agent_mux.service.clock import now_ms
from agent_mux.service.metrics import AttemptOutcome, Metrics
from agent_mux.service.store.webhooks import DeliveryRow, WebhookRow, WebhookStore
from agent_mux.service.webhooks.sender import AttemptResult, WebhookSender

MAX_CONCURRENT_ATTEMPTS = 4
"""Concurrent attempts per webhook."""
MAX_SLEEP = 300.0  # seconds; bounds the effect of changes of the system clock
FIRST_DELAY, LONGEST_DELAY = 0.1, 5.0  # seconds between two attempts to reach the database
MINUTE, HOUR = 60.0, 3600.0
DELAYS = (5.0, 5 * MINUTE, 30 * MINUTE, 2 * HOUR, 5 * HOUR, 7 * HOUR, 10 * HOUR)
"""Seconds after each failed attempt; 8 attempts in about a day."""
ATTEMPTS = len(DELAYS) + 1
JITTER = 0.2
"""Random share added to the delay, so that messages that failed together are not retried together."""
LONGEST_WAIT = 24 * HOUR
"""Upper bound for the delay that a receiver asks for."""


class DeliveryWorker:
    """Delivers the messages of one webhook until cancelled."""

    def __init__(
        self,
        webhook: WebhookRow,
        store: WebhookStore,
        sender: WebhookSender,
        metrics: Metrics,
        on_gone: Callable[[str], Awaitable[None]],
    ) -> None:
        """`webhook`: read again for each attempt.

        `on_gone`: called with the id when the receiver wants no more messages.
        """
        self.webhook = webhook
        self._store = store
        self._sender = sender
        self._metrics = metrics
        self._on_gone = on_gone
        self._in_flight: set[str] = set()
        self._news = anyio.Event()
        self.scope = anyio.CancelScope()

    def wake(self) -> None:
        """Make the worker check for new messages now."""
        self._news.set()

    async def run(self) -> None:
        """Deliver due messages until cancelled."""
        with self.scope:
            async with anyio.create_task_group() as attempts:
                while True:
                    self._news = anyio.Event()
                    due_in = self._start_due(await self._retry_database(self._next_deliveries), attempts)
                    with anyio.move_on_after(due_in):
                        await self._news.wait()

    async def _next_deliveries(self) -> list[DeliveryRow]:
        return await self._store.next_deliveries(self.webhook.webhook_id, 2 * MAX_CONCURRENT_ATTEMPTS)

    def _start_due(self, rows: list[DeliveryRow], attempts: anyio.abc.TaskGroup) -> float:
        """Start attempts for due messages up to the limit; return the seconds until the next one is due."""
        now = now_ms()
        for row in rows:
            if row.delivery_id in self._in_flight:
                continue
            if len(self._in_flight) >= MAX_CONCURRENT_ATTEMPTS:
                break
            if row.next_at > now:
                return min((row.next_at - now) / 1000, MAX_SLEEP)
            self._in_flight.add(row.delivery_id)
            attempts.start_soon(self._attempt, row)
        return MAX_SLEEP

    async def _attempt(self, row: DeliveryRow) -> None:
        webhook = self.webhook
        answer = await self._sender.send(webhook.url, _secrets(webhook), row.delivery_id, row.body.encode())
        values, outcome = attempt_update(row, answer, now_ms(), random.random())  # noqa: S311  # not a secret
        self._metrics.webhook_attempts.labels(outcome).inc()
        await self._retry_database(lambda: self._store.change_delivery(row.delivery_id, values))
        if answer.is_gone:
            await self._retry_database(lambda: self._on_gone(webhook.webhook_id))
        self._in_flight.discard(row.delivery_id)
        self.wake()

    async def _retry_database(self, ask: Callable[[], Awaitable[Any]]) -> Any:
        """Call the database until it answers."""
        delay = FIRST_DELAY
        while True:
            try:
                return await ask()
            except AgentMuxError as error:
                logging.getLogger(LOGGER).warning(
                    "deliveries of webhook %s are delayed: %s", self.webhook.webhook_id, error
                )
                await anyio.sleep(delay)
                delay = min(delay * 2, LONGEST_DELAY)


def attempt_update(
    row: DeliveryRow, answer: AttemptResult, now: int, jitter: float
) -> tuple[dict[str, Any], AttemptOutcome]:
    """Return the columns to update after an attempt, and its outcome.

    Args:
        row: The message.
        answer: Result of the attempt.
        now: Milliseconds since the epoch.
        jitter: A random number from 0 to 1.
    """
    attempts = row.attempts + 1
    values: dict[str, Any] = {
        "attempts": attempts,
        "last_at": now,
        "last_status": answer.status,
        "last_error": answer.error,
    }
    if answer.is_delivered:
        return {**values, "state": "delivered"}, "delivered"
    delay = None if answer.is_gone else retry_delay(attempts, jitter, answer.retry_after)
    if delay is None:
        return {**values, "state": "failed"}, "gone" if answer.is_gone else "given_up"
    return {**values, "next_at": now + int(delay * 1000)}, "refused" if answer.is_refused else "retry"


def _secrets(webhook: WebhookRow) -> list[str]:
    """Return the secrets to sign with: both while a rotation overlaps."""
    secrets = [webhook.secret]
    if webhook.previous_secret is not None and now_ms() < (webhook.previous_until or 0):
        secrets.append(webhook.previous_secret)
    return secrets


def retry_delay(attempts: int, jitter: float, requested: float | None = None) -> float | None:
    """Return the seconds until the next attempt; None: no further attempt.

    Args:
        attempts: Number of attempts so far.
        jitter: A random number from 0 to 1.
        requested: Seconds that the receiver asks to wait.
    """
    if attempts >= ATTEMPTS:
        return None
    usual = DELAYS[attempts - 1] * (1 + JITTER * jitter)
    return max(usual, min(requested or 0.0, LONGEST_WAIT))
