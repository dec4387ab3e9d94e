"""Start-up times: `--version`, a run of one turn, what `amux run` adds to the bare CLI, and the help of commands."""

import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

from benchmarks.measure import interleaved, report, verdict

ROUNDS = 15
SCRIPT = 'closing = "Hello."'
HELP = (["--help"], ["run", "--help"], ["mcp", "add", "--help"], ["sessions", "list", "--help"], ["hooks", "--help"])
SMALL_APPLICATION = """
import typer
def main(count: int = 1, name: str = "x", loud: bool = False) -> None:
    "Greet."
typer.run(main)
"""
FIXTURES = Path(__file__).parents[1] / "fixtures"
LIBRARIES = "import asyncio, anyio._backends._asyncio, msgspec"
"""What each run needs: the floor below which `amux run` cannot start an agent."""
MOST_ADDED = 0.15
"""Seconds that `amux run` may add to the bare CLI."""
MOST_HELP = 1.3
"""Ratio of the time of `amux --help` to that of a Typer application with three options."""
MOST = {"amux --version": 5.0, "amux-agent --version": 5.0}


def main(scratch: Path) -> None:
    """Print all reports."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # without stored bytecode, a start mostly measures the compiler
    _commands(scratch)
    _runs(scratch)
    _help(scratch)


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


def _runs(scratch: Path) -> None:
    """Measure what `amux run` adds to a CLI that ends at once, prints a recorded turn, or works for a second.

    Real CLIs take a second and more, during which `amux run` imports what shows their events.
    """
    agent = scratch / "agent"
    recorded = FIXTURES / "claude" / "2.1.330" / "plain_text" / "stdout.jsonl"
    bodies = {
        "ends at once": f"date +%s%N > {scratch}/spawned; exit 0",
        "recorded turn": f"date +%s%N > {scratch}/spawned; cat {recorded}",
        "works 1 second": f"date +%s%N > {scratch}/spawned; sleep 1; cat {recorded}",
    }
    amux = Path(sys.executable).parent / "amux"
    environ = {**os.environ, "HOME": str(scratch), "AMUX_CLAUDE_EXECUTABLE": str(agent)}
    floor = interleaved({"libraries": lambda: _run(sys.executable, "-c", LIBRARIES)}, ROUNDS).typical("libraries")
    lines = [f"asyncio, anyio and msgspec {floor * 1000:4.0f} ms: the floor"]
    for title, body in bodies.items():
        agent.write_text(f'#!/bin/sh\n[ "$1" = --version ] && {{ echo 2.1.330; exit 0; }}\n{body}\n')
        agent.chmod(0o755)
        figures = [_measure_run([str(amux), "run", "claude", "--yolo", "hi"], scratch, environ) for _ in range(ROUNDS)]
        bare = [_measure_run([str(agent)], scratch, environ) for _ in range(ROUNDS)]
        until, wall, cpu = (median(ours) * 1000 for ours in zip(*figures, strict=True))
        _, bare_wall, bare_cpu = (median(theirs) * 1000 for theirs in zip(*bare, strict=True))
        judged = verdict((wall - bare_wall) / 1000, most=MOST_ADDED)
        lines.append(
            f"amux run, {title:<14}{until:6.0f} ms to the spawn; adds {wall - bare_wall:5.0f} ms {judged}, "
            f"{cpu - bare_cpu:.0f} ms of CPU time"
        )
    report("What `amux run` adds to the bare CLI", lines)


def _measure_run(command: list[str], scratch: Path, environ: dict[str, str]) -> tuple[float, float, float]:
    """Return the seconds until the agent started, until the command ended, and of CPU time."""
    before, started, clock = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter(), time.time_ns()
    subprocess.run(
        command, check=False, cwd=scratch, env=environ, stdin=subprocess.DEVNULL, capture_output=True, timeout=120
    )
    wall = time.perf_counter() - started
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return (int((scratch / "spawned").read_text()) - clock) / 1e9, wall, cpu


def _help(scratch: Path) -> None:
    """Measure the help of some commands, compared with that of a Typer application with three options."""
    amux = Path(sys.executable).parent / "amux"
    small = scratch / "small.py"
    small.write_text(SMALL_APPLICATION)
    contestants = {"typer": lambda: _run(sys.executable, str(small), "--help")}
    for words in HELP:
        contestants[" ".join(words)] = lambda words=words: _run(str(amux), *words)  # type: ignore[misc]
    seconds = interleaved(contestants, ROUNDS)
    lines = [f"three-option Typer application {seconds.typical('typer') * 1000:6.1f} ms"]
    for words in HELP:
        name = " ".join(words)
        ratio = seconds.ratio(name, "typer")
        judged = verdict(ratio, most=MOST_HELP)
        lines.append(f"amux {name:<26}{seconds.typical(name) * 1000:6.1f} ms, ratio {ratio:.2f} {judged}")
    report("Help", lines)


def _run(*argv: str) -> None:
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)
