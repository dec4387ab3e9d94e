"""Fuzz the codecs: `python -m agent_mux_testing.fuzz [AGENT...] [--cases N] [--seed N] [--fixtures DIR]`."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from agent_mux.sdk.registry import AdapterRegistry
from agent_mux_testing.conformance.mutations import fuzz
from agent_mux_testing.conformance.recorded import Recorded
from agent_mux_testing.fixtures import find_fixtures

DEFAULT_CASES = 10_000
MAX_SHOWN = 20


def main(arguments: Sequence[str] | None = None) -> int:
    """Fuzz the agents on the command line, and print the number and the seed of failed cases. Return the exit code."""
    parser = argparse.ArgumentParser(prog="agent_mux_testing.fuzz", description=__doc__)
    parser.add_argument("agents", nargs="*", metavar="AGENT", help="default: all agents with recordings")
    parser.add_argument(
        "--cases", type=int, default=DEFAULT_CASES, help=f"cases for each agent; default {DEFAULT_CASES}"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--fixtures", type=Path, default=Path("fixtures"))
    wanted = parser.parse_args(arguments)
    registry = AdapterRegistry()
    failed = False
    for agent in wanted.agents or registry.names():
        recordings = [Recorded(registry.get(agent), folder) for folder in find_fixtures(wanted.fixtures, agent)]
        if not recordings and not wanted.agents:
            continue
        if not recordings:
            sys.stderr.write(f"error: no recordings of {agent} in {wanted.fixtures}\n")
            return 1
        problems = list(fuzz(recordings, wanted.cases, wanted.seed))
        failed = failed or bool(problems)
        sys.stdout.write(f"{agent}: {wanted.cases} cases of {len(recordings)} recordings: {len(problems)} problems\n")
        sys.stdout.writelines(f"  {problem}\n" for problem in problems[:MAX_SHOWN])
        sys.stdout.flush()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
