"""Start-up times: `amux --version`, `amux-agent --version`, a run of one turn, and the help of commands."""

import os
import subprocess
import sys
from pathlib import Path

from benchmarks.measure import interleaved, report, verdict

ROUNDS = 15
SCRIPT = 'closing = "Hello."'
HELP = (["--help"], ["run", "--help"], ["mcp", "add", "--help"], ["sessions", "list", "--help"], ["hooks", "--help"])
MOST = {"amux --version": 5.0, "amux-agent --version": 5.0}


def main(scratch: Path) -> None:
    """Print both reports."""
    _commands(scratch)
    _help()


def _commands(scratch: Path) -> None:
    """Measure cold starts, compared with `python -c pass`."""
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

    seconds = interleaved({name: lambda command=command: start(command) for name, command in commands.items()}, ROUNDS)
    lines = []
    for name in commands:
        ratio = seconds.ratio(name, "python -c pass")
        judged = verdict(ratio, most=MOST[name]) if name in MOST else ""
        lines.append(f"{name:<21}{seconds.typical(name) * 1000:7.1f} ms, ratio {ratio:5.2f} {judged}".rstrip())
    report("Start-up", lines)


def _help() -> None:
    """Measure the help of some commands, compared with importing typer and rich."""
    amux = Path(sys.executable).parent / "amux"
    contestants = {"typer": lambda: _run(sys.executable, "-c", "import typer, typer.rich_utils")}
    for words in HELP:
        contestants[" ".join(words)] = lambda words=words: _run(str(amux), *words)  # type: ignore[misc]
    seconds = interleaved(contestants, ROUNDS)
    lines = [f"import typer, rich     {seconds.typical('typer') * 1000:6.1f} ms"]
    for words in HELP:
        name = " ".join(words)
        milliseconds = seconds.typical(name) * 1000
        judged = verdict(milliseconds, most=400)
        lines.append(f"amux {name:<18}{milliseconds:6.1f} ms, {seconds.ratio(name, 'typer'):.2f} {judged}")
    report("Help", lines)


def _run(*argv: str) -> None:
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)
