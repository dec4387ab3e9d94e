"""Access to the files of agents: finding credentials, changing a large JSON file."""

import json
import subprocess
import sys
import time
from pathlib import Path

from agent_mux.agents.auth import Auth
from agent_mux.agents.installations import InstallationResolver
from agent_mux.sdk.documents import with_field
from benchmarks.measure import interleaved, report, verdict

ROUNDS = 15
PROJECTS = 600
"""Enough for a state file of one megabyte, like Claude Code's."""
COLD = """
import time
from agent_mux.agents.auth import Auth
from agent_mux.agents.installations import Homes
homes = Homes(environ={"HOME": "/nowhere"})
list(homes.adapters)
began = time.perf_counter()
Auth(homes).check_all()
print(time.perf_counter() - began)
"""


def main(scratch: Path) -> None:
    """Print both reports."""
    _credentials(scratch)
    _changes()


def _credentials(scratch: Path) -> None:
    """Measure the credential check of all agents: first in a process (with imports), and repeated."""
    cold = [float(subprocess.check_output([sys.executable, "-c", COLD])) for _ in range(ROUNDS)]
    auth = Auth(InstallationResolver(environ={"HOME": str(scratch)}))
    auth.check_all()
    warm = interleaved({"again": auth.check_all}, ROUNDS).typical("again")
    first = sorted(cold)[ROUNDS // 2]
    report(
        "Credentials of all agents",
        [
            f"first in a process {first * 1000:6.1f} ms {verdict(first * 1000, most=100)}",
            f"again              {warm * 1000:6.1f} ms",
        ],
    )


def _changes() -> None:
    """Measure changing one value in a megabyte of JSON, compared with parsing it. Changed text is parsed again."""
    project = {"allowedTools": [], "history": [{"display": "x" * 50}] * 20, "mcpServers": {}}
    text = json.dumps({"projects": {f"/home/dev/p{number}": project for number in range(PROJECTS)}}, indent=2)
    seconds = interleaved(
        {
            "read": lambda: json.loads(text),
            "change": lambda: with_field(text, "json", ("mcpServers", "x"), {"command": "y"}),
        },
        ROUNDS,
        time.process_time,
    )
    report(
        f"A change in {len(text) / 1e6:.1f} MB of JSON",
        [
            f"json.loads {seconds.typical('read') * 1000:6.1f} ms",
            f"with_field {seconds.typical('change') * 1000:6.1f} ms",
            f"ratio      {seconds.ratio('change', 'read'):6.0f}",
        ],
    )
