"""What a server does with the rows in the copy of a service directory.

A database file inside of the directory was copied with it. Its ended runs become runs of the copy. Its other runs are
those of the original, which may be at work on them at this moment: they end as `lost` in the copy, no process is
touched, nothing is started again, and no webhook reports it. A database elsewhere is shared with the original, and
nothing in it belongs to the copy.

Runs change their instance one by one, those that had not ended first, so that an interrupted start continues here: a
run of this instance was never one that the original works on.
"""

import logging
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from anyio import to_thread

from agent_mux._util.logs import LOGGER
from agent_mux.run.derivation import CodecFactory
from agent_mux.run.result import RunError
from agent_mux.service.instance import ServiceInstance
from agent_mux.service.runs.recovery import lost_values, recovered_values
from agent_mux.service.store.copies import CopiedRows
from agent_mux.service.store.instances import InstanceRow
from agent_mux.service.store.runs import RunRow

LOST = "this is a copy of the service's directory, and the server of the original has the run"


async def take_over_copy(instance: ServiceInstance, own: InstanceRow, journals: Path, make_codec: CodecFactory) -> None:
    """Take over the rows of a copied database, if the directory is a copy. Raises UNAVAILABLE."""
    if instance.copy_of is None:
        return
    log = logging.getLogger(LOGGER)
    if not own.database.is_inside(instance.directory):
        log.warning(
            "%s is a copy: the runs of instance %s in %s stay those of the original; this server begins without runs, "
            "as instance %s", instance.directory, instance.copy_of, own.database.shown, own.instance,
        )  # fmt: skip
        instance.complete_copy()
        return
    rows = CopiedRows(own, instance.copy_of)
    unfinished = await rows.unfinished()
    for row in unfinished:
        await rows.take_run(row.run_id, await to_thread.run_sync(copied_values, row, journals, make_codec))
    await rows.take_rest()
    instance.complete_copy()
    log.warning(
        "%s is a copy of the directory of instance %s: %d of its runs had not ended and are lost here, and its "
        "webhooks are disabled; this is instance %s now", instance.directory, instance.copy_of, len(unfinished),
        own.instance,
    )  # fmt: skip


def copied_values(row: RunRow, journals: Path, make_codec: CodecFactory) -> Mapping[str, Any]:
    """Return the columns of a run that had not ended when its directory was copied. Blocking: reads its journal."""
    journal = journals / f"{row.run_id}.journal"
    error = RunError("RUN_LOST", LOST)
    if not journal.exists():
        return lost_values(row, LOST)
    return recovered_values(row, journal, make_codec, lambda result: replace(result, error=error))
