"""Around a run: finding credentials, changing a large file, showing help."""

import json
import subprocess
import sys
import time
from pathlib import Path

from agent_mux.auth.client import Auth
from agent_mux.documents import with_field
from agent_mux.homes import Homes
from benchmarks.measure import interleaved, report, verdict

ROUNDS = 15
PROJECTS = 600
"""As many as make one megabyte of a state file like Claude Code's."""
COLD = """
import time
from agent_mux.auth.client import Auth
from agent_mux.homes import Homes
homes = Homes(environ={"HOME": "/nowhere"})
list(homes.adapters)
began = time.perf_counter()
Auth(homes).check_all()
print(time.perf_counter() - began)
"""
HELP = (["--help"], ["run", "--help"], ["mcp", "add", "--help"], ["sessions", "list", "--help"], ["hooks", "--help"])


def main(scratch: Path) -> None:
    """Print three reports."""
    _credentials(scratch)
    _changes()
    _help()


def _credentials(scratch: Path) -> None:
    """All agents: for the first time in a process (its homes are imported), and again."""
    cold = [float(subprocess.check_output([sys.executable, "-c", COLD])) for _ in range(ROUNDS)]
    auth = Auth(Homes(environ={"HOME": str(scratch)}))
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
    """One value in a megabyte of JSON, against reading it; every change is read again before it is kept."""
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


def _help() -> None:
    """Of some commands, against importing what prints it."""
    amux = Path(sys.executable).parent / "amux"
    contestants = {"typer": lambda: _run(sys.executable, "-c", "import typer, typer.rich_utils")}
    for words in HELP:
        contestants[" ".join(words)] = lambda words=words: _run(str(amux), *words)  # type: ignore[misc]
    seconds = interleaved(contestants, ROUNDS)
    lines = [f"import typer, rich     {seconds.typical('typer') * 1000:6.1f} ms"]
    for words in HELP:
        name = " ".join(words)
        told = seconds.typical(name) * 1000
        lines.append(f"amux {name:<18}{told:6.1f} ms, {seconds.ratio(name, 'typer'):.2f} {verdict(told, most=400)}")
    report("Help", lines)


def _run(*argv: str) -> None:
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)
