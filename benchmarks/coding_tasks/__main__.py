"""Run the coding tasks and store the outcomes: `python -m benchmarks.coding_tasks [--task NAME] [--harness AGENT]`.

Real programs are started only offline: `python -m agent_mux_testing.offline -- python -m benchmarks.coding_tasks`. The
outcomes of other tasks and harnesses in the results file are kept, and `make docs` renders all of them as a page.
"""

import argparse
import asyncio
import sys
import tempfile
from pathlib import Path

from agent_mux_testing.offline import is_offline
from benchmarks.coding_tasks.harnesses import HARNESSES
from benchmarks.coding_tasks.results import RESULTS, Outcome, read_results, write_results
from benchmarks.coding_tasks.running import find_harness, run_task
from benchmarks.coding_tasks.tasks import TASKS


def run_all(tasks: list[str], agents: list[str], results: Path) -> None:
    """Run the tasks in the harnesses, one at a time, and store each outcome."""
    if not is_offline():
        sys.exit("real CLIs are started only offline: python -m agent_mux_testing.offline -- COMMAND")
    with tempfile.TemporaryDirectory(prefix="coding-tasks-") as scratch:
        found = {harness.agent: find_harness(harness, Path(scratch)) for harness in HARNESSES}
        for agent in agents:
            if found[agent] is None:
                sys.exit(f"{agent} is not provisioned; try: python -m agent_mux_testing.provision {agent}")
        for task in (task for task in TASKS if task.name in tasks):
            for harness in (harness for harness in HARNESSES if harness.agent in agents):
                program = found[harness.agent]
                assert program is not None
                outcome = asyncio.run(run_task(task, harness, program))
                known = read_results(results)
                known.setdefault(task.name, {})[harness.agent] = outcome
                write_results(results, known)
                print(_line(task.name, harness.agent, outcome), flush=True)


def _line(task: str, agent: str, outcome: Outcome) -> str:
    verdict = outcome.reason or "passed"
    return f"{task:28} {agent:9} {outcome.seconds:6.1f} s {outcome.model_calls:3} calls  {verdict}"


def main() -> None:
    """Parse the command line and run the tasks."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.coding_tasks", description=__doc__)
    names, agents = [task.name for task in TASKS], [harness.agent for harness in HARNESSES]
    parser.add_argument("--task", action="append", choices=names, metavar="NAME", help="run only this one; repeatable")
    parser.add_argument("--harness", action="append", choices=agents, help="run only this one; repeatable")
    parser.add_argument("--results", type=Path, default=RESULTS, help="default: the file of the documentation")
    given = parser.parse_args()
    run_all(given.task or names, given.harness or agents, given.results)


if __name__ == "__main__":
    main()
