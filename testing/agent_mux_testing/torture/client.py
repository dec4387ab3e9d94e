"""A client that the suite kills: `python -m agent_mux_testing.torture.client <kind> <directory> <token> <backend>`.

It prints `ready` before its first runs begin, and then runs misbehaving agents until it is killed.
"""

import itertools
import sys
from pathlib import Path

import anyio

from agent_mux.client import AgentMux
from agent_mux.sdk.registry import AdapterRegistry
from agent_mux_testing.torture.adapter import AGENT, torture_adapter

KINDS = {
    "daemons": ("daemons-and-work", "double-fork", "burst", "stubborn", "holder"),
    "writers": ("writes-for-ever",),
}
"""Behaviours of its agents, each over pipes and at a terminal."""
CONCURRENT_RUNS = 4
CHILDREN = 8  # of a burst
RUN_TIMEOUT = 0.4  # seconds; short, so that clients are also killed while runs begin and end


async def _run_for_ever(kind: str, directory: Path, token: str, number: int) -> None:
    plays = itertools.islice(itertools.cycle(itertools.product(KINDS[kind], (False, True))), number, None)
    for behaviour, terminal in plays:
        registry = AdapterRegistry()
        registry.register(torture_adapter(behaviour, CHILDREN, token, terminal=terminal))
        # Its own project directory: the user's configuration must not affect the case.
        async with AgentMux(
            adapters=registry, default_agent=AGENT, config_dir=directory, project_config_dir=directory
        ) as mux:
            timeout = RUN_TIMEOUT if kind == "daemons" else 0.0
            await mux.run(prompt="begin", timeout=timeout, grace_period=0.1)


async def _main(kind: str, directory: Path, token: str) -> None:
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    async with anyio.create_task_group() as tasks:
        for number in range(CONCURRENT_RUNS):
            tasks.start_soon(_run_for_ever, kind, directory, token, number)


if __name__ == "__main__":
    anyio.run(_main, sys.argv[1], Path(sys.argv[2]), sys.argv[3], backend=sys.argv[4])
