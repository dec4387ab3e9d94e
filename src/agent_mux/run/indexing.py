"""A run that ended is written into the index: after its result is there, in a thread, and at no cost to the run."""

import logging
from pathlib import Path

import anyio
from anyio import to_thread

from agent_mux._util.logs import LOGGER
from agent_mux.journal.run_index import IndexRecord, append, line_of, new_record
from agent_mux.run.plan import RunPlan
from agent_mux.run.result import RunResult

LONGEST_WAIT = 5.0  # seconds; a disk that does not answer keeps nobody


async def write_into_index(path: Path, plan: RunPlan, started_at: int, result: RunResult) -> None:
    """Add the run to an index. Never raises: what keeps it from being written is a warning in the log.

    `started_at`: milliseconds since the epoch.
    """
    line = plan.redactor.mask(line_of(_record_of(plan, started_at, result)))
    reason = f"it took more than {LONGEST_WAIT:g} s"
    with anyio.move_on_after(LONGEST_WAIT, shield=True):
        try:
            await to_thread.run_sync(append, path, line, abandon_on_cancel=True)
        except OSError as error:
            reason = error.strerror or str(error)
        else:
            return
    logging.getLogger(LOGGER).warning("run %s is not in the index %s: %s", plan.run_id, path, reason)


def _record_of(plan: RunPlan, started_at: int, result: RunResult) -> IndexRecord:
    cost = result.cost
    return new_record(
        started_at=started_at,
        run_id=result.run_id,
        agent=result.agent,
        model=result.model,
        session_id=result.session_id,
        cost=None if cost is None or cost.source == "unknown" else cost.total_usd,
        tags=plan.header.tags,
        project_id=plan.options.project_id,
    )
