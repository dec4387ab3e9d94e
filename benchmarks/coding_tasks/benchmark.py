"""All coding tasks in all harnesses, one at a time; each outcome is stored as soon as it is known."""

import asyncio
import sys
import tempfile
from collections.abc import Collection
from pathlib import Path

from agent_mux_testing.offline import is_offline
from agent_mux_testing.provision import Provisioned
from benchmarks.coding_tasks.harnesses import HARNESSES, Harness
from benchmarks.coding_tasks.results import RESULTS, Outcome, read_results, write_results
from benchmarks.coding_tasks.running import find_harness, run_task
from benchmarks.coding_tasks.tasks import TASKS

TASK_NAMES = tuple(task.name for task in TASKS)
AGENTS = tuple(harness.agent for harness in HARNESSES)


def main(_: Path) -> None:
    """Run everything, and store the outcomes for the documentation."""
    run_tasks(TASK_NAMES, AGENTS, RESULTS)


def run_tasks(tasks: Collection[str], agents: Collection[str], results: Path) -> None:
    """Run these tasks in these harnesses. Outcomes of others in the results file are kept."""
    if not is_offline():
        sys.exit("real CLIs are started only offline: python -m agent_mux_testing.offline -- COMMAND")
    with tempfile.TemporaryDirectory(prefix="coding-tasks-") as scratch:
        wanted = [harness for harness in HARNESSES if harness.agent in agents]
        programs = [(harness, _program(harness, Path(scratch))) for harness in wanted]
        for task in (task for task in TASKS if task.name in tasks):
            for harness, program in programs:
                outcome = asyncio.run(run_task(task, harness, program))
                known = read_results(results)
                known.setdefault(task.name, {})[harness.agent] = outcome
                write_results(results, known)
                print(_line(task.name, harness.agent, outcome), flush=True)


def _program(harness: Harness, scratch: Path) -> Provisioned:
    found = find_harness(harness, scratch)
    if found is None:
        sys.exit(f"{harness.agent} is not provisioned; try: python -m agent_mux_testing.provision {harness.agent}")
    return found


def _line(task: str, agent: str, outcome: Outcome) -> str:
    verdict = outcome.reason or "passed"
    return f"{task:36} {agent:9} {outcome.seconds:6.1f} s {outcome.model_calls:3} calls  {verdict}"
