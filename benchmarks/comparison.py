"""What a comparison adds to each trial: 200 trials of `replay`, against 200 single runs and 200 bare processes.

Each contestant runs in a process of its own, one trial after the other: `python -m benchmarks.comparison NAME DIRECTORY
TRIALS`.
"""

import asyncio
import json
import resource
import shutil
import subprocess
import sys
import time
from asyncio.subprocess import PIPE
from pathlib import Path

from agent_mux import AgentMux
from benchmarks.measure import report, verdict

TRIALS = 200
RECORDING = Path(__file__).parents[1] / "fixtures" / "codex" / "0.169.0" / "exec_ok"
ENVIRONMENT = {"AMUX_REPLAY_SPEED": "0"}
MOST_MS = 40.0  # of wall time, for each trial
MOST_MEGABYTES = 80.0


async def compare(directory: Path, trials: int) -> None:
    """Compare one candidate that plays a recording."""
    async with AgentMux(config_dir=directory / "mux") as mux:
        run = await mux.compare(
            str(RECORDING),
            candidates=[{"agent": "replay", "trials": trials}],
            cwd=directory / "repository",
            jobs=1,
            options={"env": ENVIRONMENT},
        )
        comparison = await run.result()
    outcomes = {(trial.outcome.verdict, trial.outcome.cause) for trial in comparison.trials if trial.outcome}
    assert outcomes == {("unjudged", "no_change")}, outcomes


async def run(directory: Path, trials: int) -> None:
    """Play the recording with `AgentMux.run`, in the repository itself."""
    async with AgentMux(config_dir=directory / "mux") as mux:
        for _ in range(trials):
            handle = mux.run(agent="replay", prompt=str(RECORDING), cwd=str(directory / "repository"), env=ENVIRONMENT)
            assert (await handle).exit_reason == "completed"


async def bare(directory: Path, trials: int) -> None:
    """Start the program that plays the recording, and read its output."""
    async with AgentMux(config_dir=directory / "mux") as mux:
        words = mux.plan(agent="replay", prompt=str(RECORDING), env=ENVIRONMENT).spawn.argv
    for _ in range(trials):
        process = await asyncio.create_subprocess_exec(
            *words, cwd=directory / "repository", stdin=subprocess.DEVNULL, stdout=PIPE, stderr=PIPE
        )
        await process.communicate()
        assert process.returncode == 0


CONTESTANTS = {"bare": bare, "run": run, "compare": compare}


def measure(name: str, directory: Path, trials: int) -> dict[str, float]:
    """Run one contestant here. Return seconds of wall time and CPU of this process and its children, and MB."""
    began = time.perf_counter()
    asyncio.run(CONTESTANTS[name](directory, trials))
    wall = time.perf_counter() - began
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    kilobytes = own.ru_maxrss / (1024 if sys.platform == "darwin" else 1)
    return {
        "wall": wall,
        "own": own.ru_utime + own.ru_stime,
        "children": children.ru_utime + children.ru_stime,
        "megabytes": kilobytes / 1024,
    }


def main(scratch: Path) -> None:
    """Print milliseconds for each trial, and the peak memory of our process."""
    found = {name: _measure_in_process(name, scratch / f"comparison-{name}") for name in CONTESTANTS}
    overhead = (found["compare"]["wall"] - found["run"]["wall"]) / TRIALS * 1e3
    memory = found["compare"]["megabytes"]
    report(
        f"Comparison of {TRIALS} trials of `replay`, one at a time",
        [
            *(
                f"{name:8} {taken['wall'] / TRIALS * 1e3:7.1f} ms/trial wall, CPU {taken['own'] / TRIALS * 1e3:6.1f} ms"
                f" own and {taken['children'] / TRIALS * 1e3:6.1f} ms children, {taken['megabytes']:5.0f} MB"
                for name, taken in found.items()
            ),
            f"more than a single run: {overhead:.1f} ms/trial {verdict(overhead, most=MOST_MS)}",
            f"peak memory: {memory:.0f} MB {verdict(memory, most=MOST_MEGABYTES)}",
        ],
    )


def _measure_in_process(name: str, directory: Path) -> dict[str, float]:
    repository = directory / "repository"
    repository.mkdir(parents=True)
    (repository / "file.py").write_text("value = 1\n")
    git = shutil.which("git") or "git"
    for words in (["init", "--quiet"], ["add", "--all"], ["commit", "--quiet", "--message=Start"]):
        identity = ["-c", "user.name=x", "-c", "user.email=x@example.com"]
        subprocess.run([git, *identity, *words], cwd=repository, check=True)
    command = [sys.executable, "-m", "benchmarks.comparison", name, str(directory), str(TRIALS)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE)
    measured: dict[str, float] = json.loads(done.stdout)
    return measured


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))))
