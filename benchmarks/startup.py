"""`amux --version`, `amux-agent --version` and a whole run of one turn, cold, against `python -c pass`."""

import os
import subprocess
import sys
from pathlib import Path

from benchmarks.measure import interleaved, report, verdict

ROUNDS = 15
SCRIPT = 'closing = "Hello."'
MOST = {"amux --version": 5.0, "amux-agent --version": 5.0}


def main(scratch: Path) -> None:
    """Print the times, and their ratios to a bare interpreter's."""
    amux, agent = (str(Path(sys.executable).parent / name) for name in ("amux", "amux-agent"))
    script = scratch / "hello.toml"
    script.write_text(SCRIPT)
    commands = {
        "python -c pass": [sys.executable, "-c", "pass"],
        "amux --version": [amux, "--version"],
        "amux-agent --version": [agent, "--version"],
        "amux-agent, one turn": [agent, "--no-session", f"--model=scripted:{script}", "hello"],
    }
    environ = {**os.environ, "HOME": str(scratch)}

    def start(command: list[str]) -> None:
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=scratch, env=environ)

    seconds = interleaved({name: lambda given=given: start(given) for name, given in commands.items()}, ROUNDS)
    lines = []
    for name in commands:
        ratio = seconds.ratio(name, "python -c pass")
        judged = verdict(ratio, most=MOST[name]) if name in MOST else ""
        lines.append(f"{name:<21}{seconds.typical(name) * 1000:7.1f} ms, ratio {ratio:5.2f} {judged}".rstrip())
    report("Start-up", lines)
