"""Listing 100,000 runs: one page from the store of the service, compared with the same query in `sqlite3`."""

import asyncio
import json
import sqlite3
from collections.abc import Callable
from pathlib import Path

from ulid import ULID

from agent_mux.service.store.database import Database, checked_url
from agent_mux.service.store.instances import InstanceRow
from agent_mux.service.store.runs import RunFilter, RunPosition, RunRow, RunStore
from agent_mux.service.store.tables import RUNS
from benchmarks.measure import interleaved, report, verdict

COUNT, PAGE, ROUNDS = 100_000, 50, 40
INSTANCE = str(ULID())
RESULT = json.dumps({"type": "run_result", "text": "x" * 2_000})
FIRST = "SELECT * FROM runs WHERE instance = ? ORDER BY created_at DESC, run_id DESC LIMIT ?"
MIDDLE = (
    "SELECT * FROM runs WHERE instance = ? AND (created_at, run_id) < (?, ?) "
    "ORDER BY created_at DESC, run_id DESC LIMIT ?"
)


def main(scratch: Path) -> None:
    """Print the report."""
    path = scratch / "listing.db"
    with asyncio.Runner() as runner:
        database = Database(checked_url(None, path))
        store = RunStore(InstanceRow(database, INSTANCE))  # it only reads
        runner.run(_fill(database))
        plain = sqlite3.connect(path)
        middle = RunPosition(COUNT // 2, str(ULID()))

        def page(wanted: RunFilter, after_position: RunPosition | None = None) -> Callable[[], object]:
            return lambda: runner.run(store.page(wanted, after_position=after_position, limit=PAGE))

        def bare(query: str, *values: object) -> Callable[[], object]:
            return lambda: plain.execute(query, (INSTANCE, *values, PAGE)).fetchall()

        seconds = interleaved(
            {
                "first": page(RunFilter()),
                "bare first": bare(FIRST),
                "middle": page(RunFilter(), middle),
                "bare middle": bare(MIDDLE, *middle),
                "rare state": page(RunFilter(states=("running",))),
                "rare agent": page(RunFilter(agent="rare")),
            },
            ROUNDS,
        )
        plain.close()
        runner.run(database.close())
    report(
        f"A page of {PAGE} among {COUNT:,} runs",
        [
            *(
                f"{name:10} {seconds.typical(name) * 1000:6.2f} ms, {seconds.ratio(name, f'bare {name}'):5.1f} times"
                f" the bare query"
                for name in ("first", "middle")
            ),
            f"middle compared with first: {seconds.ratio('middle', 'first'):.2f} "
            + verdict(seconds.ratio("middle", "first"), most=2),
            f"rare state {seconds.typical('rare state') * 1000:6.2f} ms",
            f"rare agent {seconds.typical('rare agent') * 1000:6.2f} ms",
        ],
    )


async def _fill(database: Database) -> None:
    await database.open()
    usual = RunRow(run_id="", created_at=0, agent="usual", state="completed", result=RESULT)
    columns = {name: getattr(usual, name) for name in usual.__struct_fields__ if name != "tags"}
    rows = [{**columns, "instance": INSTANCE, "run_id": str(ULID()), "created_at": number} for number in range(COUNT)]
    for row in rows[: COUNT // 100 : 100]:
        row |= {"agent": "rare", "state": "running"}
    async with database.writing() as connection:
        await connection.execute(RUNS.insert(), rows)
