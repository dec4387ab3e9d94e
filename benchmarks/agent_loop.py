"""What our loop costs by the turn and by the tool call: against no loop, pydantic-ai's own and openai-agents'."""

import asyncio
import time
from functools import partial
from pathlib import Path

from benchmarks.loop_contestants import STREAMED, WHOLE, Contestant, Work, added
from benchmarks.measure import Rounds, interleaved, report, verdict

ROUNDS = 5
TURNS = Work(turns=50, calls=1)
CALLS = Work(turns=1, calls=200)
BETTER = 1.0
"""Of the time of any other loop: what ours may take at most."""


def rounds(contestants: dict[str, Contestant], work: Work) -> Rounds:
    """Seconds of processor time for this work, each contestant in each round."""
    runs = {name: partial(_run, contestant, work) for name, contestant in contestants.items()}
    for name, run in runs.items():
        added.clear()
        run()  # imports and caches are no part of it
        assert added["calls"] == work.turns * work.calls, (name, added)
    return interleaved(runs, ROUNDS, time.process_time)


def _run(contestant: Contestant, work: Work) -> None:
    asyncio.run(contestant(work))


def main(_: Path) -> None:
    """Print each contestant's time by the turn and by the call, and how that stands to ours."""
    for title, work, count in (
        (f"A turn with one tool call, of {TURNS.turns}", TURNS, TURNS.turns),
        (f"A tool call, of {CALLS.calls} in one turn", CALLS, CALLS.calls),
    ):
        for way, contestants in (("whole", WHOLE), ("streamed", STREAMED)):
            report(f"{title}, {way}", _rows(rounds(contestants, work), count))


def _rows(seconds: Rounds, count: int) -> list[str]:
    rows = []
    for name in seconds:
        row = f"{name:<14}{seconds.typical(name) / count * 1e6:9.1f} us"
        if name not in {"agent_loop", "bare"}:
            share = seconds.ratio("agent_loop", name)
            row += f"   agent_loop takes {share:4.2f} of it {verdict(share, most=BETTER)}"
        rows.append(row)
    return rows
