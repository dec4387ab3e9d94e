"""`amux-agent agents`: list the agents that `--agent` can name."""

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from agent_loop.cli.agents import KnownAgents, known_agents
from agent_loop.cli.errors import UsageError
from agent_loop.presets.builtin import BUILT_IN
from agent_mux._util.sanitize import one_line

MAX_PROBLEM = 1000
WIDTH = 100
"""The width of a description in columns."""


def show_agents(argv: Sequence[str]) -> int:
    """List the agents, and the files that are skipped on standard error; return the exit code. Raises `UsageError`."""
    if argv:
        raise UsageError("`amux-agent agents` takes no arguments")
    known = known_agents(os.environ, Path.cwd())
    for line in _lines(known):
        sys.stdout.write(line + "\n")
    sys.stdout.flush()
    for problem in known.problems:
        sys.stderr.write(f"amux-agent: {one_line(problem, MAX_PROBLEM)}\n")
    return 0


def _lines(known: KnownAgents) -> Iterator[str]:
    for preset in BUILT_IN:
        yield f"{preset.name}  {one_line(preset.description or '', WIDTH)}  (built-in)"
    for each in known.files:
        yield f"{each.preset.name}  {one_line(each.preset.description or '-', WIDTH)}  ({each.path})"
