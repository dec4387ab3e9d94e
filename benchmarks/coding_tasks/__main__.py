"""Run coding tasks: `python -m benchmarks.coding_tasks [--task NAME] [--harness AGENT]`.

Real programs are started only offline: `python -m agent_mux_testing.offline -- python -m benchmarks.coding_tasks`.
`make docs` renders the outcomes as a page.
"""

import argparse
from pathlib import Path

from benchmarks.coding_tasks.benchmark import AGENTS, TASK_NAMES, run_tasks
from benchmarks.coding_tasks.results import RESULTS


def main() -> None:
    """Parse the command line and run the tasks."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.coding_tasks", description=__doc__)
    add = parser.add_argument
    add("--task", action="append", choices=TASK_NAMES, metavar="NAME", help="run only this task; repeatable")
    add("--harness", action="append", choices=AGENTS, help="run only this harness; repeatable")
    add("--results", type=Path, default=RESULTS, help="default: the file of the documentation")
    given = parser.parse_args()
    run_tasks(given.task or TASK_NAMES, given.harness or AGENTS, given.results)


if __name__ == "__main__":
    main()
