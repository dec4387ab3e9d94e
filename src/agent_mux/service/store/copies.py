"""The rows in a copied database, which still have the instance id of the original."""

from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from agent_mux.service.store.instances import InstanceRow
from agent_mux.service.store.runs import RunRow, RunStore, storable
from agent_mux.service.store.tables import AUDIT, RUNS, WEBHOOK_DELIVERIES, WEBHOOKS

DISABLED = "the directory of the service was copied; enable the webhook if this server is to send messages, too"


class CopiedRows:
    """Rows of the original in the copy's own database, which become rows of the copy."""

    def __init__(self, own: InstanceRow, original: str) -> None:
        """`own`: the row of the copy. `original`: the instance id in the rows."""
        self._own = own
        self._original = original

    async def unfinished(self) -> Sequence[RunRow]:
        """Return the runs that had not ended when the directory was copied."""
        return await RunStore(InstanceRow(self._own.database, self._original)).unfinished()

    async def take_run(self, run_id: str, values: Mapping[str, Any]) -> None:
        """Store the outcome of one of them, as a run of the copy."""
        row = {name: storable(value) for name, value in values.items()}
        change = RUNS.update().where(RUNS.c.instance == self._original, RUNS.c.run_id == run_id)
        async with self._own.writing() as connection:
            await connection.execute(change.values(**row, instance=self._own.instance))

    async def take_rest(self) -> None:
        """Make all other runs, the webhooks and the audit trail those of the copy. The webhooks owe no message."""
        webhooks = WEBHOOKS.c.instance == self._original
        owed = WEBHOOK_DELIVERIES.c.webhook_id.in_(sa.select(WEBHOOKS.c.webhook_id).where(webhooks))
        pending = WEBHOOK_DELIVERIES.update().where(owed, WEBHOOK_DELIVERIES.c.state == "pending")
        taken = WEBHOOKS.update().where(webhooks)
        async with self._own.writing() as connection:
            await connection.execute(pending.values(state="failed", last_error=DISABLED))
            await connection.execute(
                taken.values(instance=self._own.instance, is_enabled=False, disabled_reason=DISABLED)
            )
            for table in (RUNS, AUDIT):
                rest = table.update().where(table.c.instance == self._original)
                await connection.execute(rest.values(instance=self._own.instance))
