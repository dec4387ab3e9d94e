"""`amux-agent agents`: list the agents that `--agent` can name."""

import os
import shutil
import sys
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path

from agent_loop.cli.agents import KnownAgents, known_agents
from agent_loop.cli.parsing import CommandParser
from agent_loop.cli.printing import print_text
from agent_loop.presets.builtin import BUILT_IN
from agent_mux._util.sanitize import one_line, sanitize

MAX_PROBLEM = 1000
MAX_DESCRIPTION = 200
"""The longest description that is printed, in characters."""
MIN_TEXT = 40
"""The narrowest column of descriptions, so that a long name or a narrow terminal leaves it readable."""


def show_agents(argv: Sequence[str]) -> int:
    """List the agents, and the files that are skipped on standard error; return the exit code. Raises `UsageError`.

    Descriptions are wrapped to the width of a terminal; otherwise each agent is one line.
    """
    CommandParser(
        prog="amux-agent agents", description="List the agents that --agent can name.", allow_abbrev=False
    ).parse_args(list(argv))
    known = known_agents(os.environ, Path.cwd())
    lines = agent_lines(known, shutil.get_terminal_size().columns if sys.stdout.isatty() else None)
    print_text("".join(f"{line}\n" for line in lines))
    for problem in known.problems:
        sys.stderr.write(f"amux-agent: {one_line(problem, MAX_PROBLEM)}\n")
    return 0


def agent_lines(known: KnownAgents, width: int | None) -> Iterator[str]:
    """Yield the list of agents: names and descriptions as columns. `width`: that of the list; None does not wrap it."""
    rows = [(each, "built-in") for each in BUILT_IN]
    rows += [(each.preset, str(each.path)) for each in known.files]
    column = max(len(str(preset.name)) for preset, _ in rows) + 2
    for preset, source in rows:
        name, targets = str(preset.name), ", ".join(preset.handoffs)
        handoffs = f"  (hands off to {one_line(targets, MAX_DESCRIPTION)})" if targets else ""
        text = f"{one_line(preset.description or '-', MAX_DESCRIPTION)}{handoffs}  ({sanitize(source)})"
        lines = [text] if width is None else textwrap.wrap(text, max(width - column, MIN_TEXT), break_on_hyphens=False)
        for index, line in enumerate(lines):
            yield f"{'' if index else name:{column}}{line}"
