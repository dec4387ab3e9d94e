"""Comparisons whose process is killed: no agent stays, and they resume to the same results."""

import os
import random
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import anyio
import pytest
from tests.process.compared_agents import CHECK, compared_mux, git, make_repository, run_comparison

from agent_mux.compare.ledger import LEDGER, ComparisonFolder
from agent_mux.compare.records import Comparison
from agent_mux.process.marker import PREFIX

TIMEOUT = 180.0
AGENTS = ("fixes,trials=2", "nothing,trials=2", "works-slowly,trials=2")
EXPECTED = {
    "fixes-1": "pass", "fixes-2": "pass", "nothing-1": "fail", "nothing-2": "fail",
    "works-slowly-1": "pass", "works-slowly-2": "pass",
}  # fmt: skip
PROGRAM = f"""
import sys, anyio
from pathlib import Path
from tests.process.compared_agents import CHECK, compared_mux
async def main():
    async with compared_mux(Path(sys.argv[1]), "fixes", "nothing", "works-slowly") as mux:
        run = await mux.compare("fix it", candidates={AGENTS!r}, cwd=sys.argv[2], checks=[CHECK], seed=3)
        print(run.id, flush=True)
        await run.result()
anyio.run(main)
"""


def temporary_of(config: Path) -> Path:
    """Return the directory for temporary files of the comparison that is killed; resuming it uses another one."""
    path = config.parent / "temporary"
    path.mkdir(exist_ok=True)
    return path


def start(config: Path, repository: Path) -> "subprocess.Popen[str]":
    root = Path(__file__).parents[2]
    own = {"COMPARISON_TEST": str(config), "TMPDIR": str(temporary_of(config))}
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(config), str(repository)],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root), **own},
        stdout=subprocess.PIPE,
        encoding="utf-8",
    )


def facts_of(config: Path) -> int:
    ledgers = list((config / "comparisons").glob(f"*/{LEDGER}"))
    return ledgers[0].read_bytes().count(b"\n") if ledgers else 0


def kill_after(process: "subprocess.Popen[str]", config: Path, facts: int, delay: float) -> None:
    """Kill the process once the ledger has so many lines, and a moment later."""
    deadline = time.monotonic() + TIMEOUT
    while facts_of(config) < facts and process.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    time.sleep(delay)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=TIMEOUT)


def living_agents(config: Path) -> list[int]:
    """Return the processes of runs that belong to this test."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                environment = (entry / "environ").read_bytes()
            except OSError:
                continue
            if f"COMPARISON_TEST={config}".encode() in environment and PREFIX.encode() in environment:
                found.append(int(entry.name))
    return found


def wait_until_none_lives(config: Path) -> None:
    deadline = time.monotonic() + 60.0
    while living_agents(config):
        assert time.monotonic() < deadline, "an agent of a killed comparison is alive"
        time.sleep(0.05)


async def resume(config: Path) -> Comparison:
    with anyio.fail_after(TIMEOUT):
        async with compared_mux(config, "fixes", "nothing", "works-slowly") as mux:
            return await (await mux.resume_comparison()).result()


def check_resumption(config: Path) -> None:
    (path,) = (config / "comparisons").iterdir()
    recorded = (path / LEDGER).read_bytes()
    deadline = time.monotonic() + 60.0
    while ComparisonFolder(path).is_active():  # a child that was just being started holds the lock for a moment
        assert time.monotonic() < deadline
        time.sleep(0.05)
    before = ComparisonFolder(path).comparison()
    if before.status == "ended":  # it was faster than the kill
        assert {trial.id: trial.outcome.verdict for trial in before.trials if trial.outcome} == EXPECTED
        return
    assert before.status == "interrupted"
    done = {trial.id: trial for trial in before.trials if trial.outcome is not None}
    interrupted = {trial.id for trial in before.trials if trial.outcome is None and trial.attempts}
    after = anyio.run(resume, config)
    assert (path / LEDGER).read_bytes().startswith(recorded[: recorded.rfind(b"\n") + 1])
    assert {trial.id: trial.outcome.verdict for trial in after.trials if trial.outcome} == EXPECTED
    assert {trial.id: trial for trial in after.trials if trial.id in done} == done
    for trial in after.trials:
        if trial.id in interrupted:
            assert trial.attempts[0].ended_at is None  # the interrupted attempt stays visible
            assert len(trial.attempts) >= 2
    assert not list((config / "workspaces").iterdir())
    assert not list(temporary_of(config).glob("amux-*"))


@pytest.mark.slow
def test_killed_comparison_leaves_no_agent_and_resumes(tmp_path: Path) -> None:
    repository, config = make_repository(tmp_path / "repository"), tmp_path / "config"
    kill_after(start(config, repository), config, facts=7, delay=0.1)
    assert list(temporary_of(config).glob("amux-*"))
    wait_until_none_lives(config)
    check_resumption(config)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_comparison_resumes_wherever_it_is_killed(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311  # a place, not a secret
    repository, config = make_repository(tmp_path / "repository"), tmp_path / "config"
    kill_after(start(config, repository), config, facts=chance.randrange(1, 16), delay=chance.random() * 0.3)
    wait_until_none_lives(config)
    check_resumption(config)


@pytest.mark.slow
def test_killed_apply_leaves_nothing_once_another_comparison_starts(tmp_path: Path) -> None:
    repository, config, temporary = make_repository(tmp_path / "repository"), tmp_path / "config", tmp_path / "tmp"
    temporary.mkdir()
    check = f"sh -c 'test -z \"$KILLED_BY_CHECK\" || kill -9 $PPID; {CHECK}'"
    (tmp_path / "fix.patch").write_text(git(repository, "diff", "main", "solution"))
    oracle = f"oracle:{tmp_path / 'fix.patch'}"
    anyio.run(partial(run_comparison, config, repository, oracle, checks=[check]))
    imports = "from pathlib import Path; from agent_mux.compare.store import Comparisons"
    own = {"TMPDIR": str(temporary), "KILLED_BY_CHECK": "yes"}
    words = [sys.executable, "-c", f"{imports}; Comparisons(Path({str(config)!r})).apply('oracle')"]
    assert subprocess.run(words, env={**os.environ, **own}, check=False, timeout=TIMEOUT).returncode == -signal.SIGKILL
    assert list(temporary.iterdir())
    anyio.run(partial(run_comparison, config, repository, "null", checks=[]))
    assert list(temporary.iterdir()) == []


def test_the_check_of_these_tests_passes_only_with_the_fix(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "repository")
    words = CHECK.split()
    assert subprocess.run(words, cwd=repository, capture_output=True, check=False, timeout=60).returncode != 0
