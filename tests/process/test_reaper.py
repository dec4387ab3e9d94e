"""No process of a run survives when its client is killed."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from agent_mux.process.marker import kill_processes_of, marker_variable, processes_of
from agent_mux.run.environment import temp_dir_of

CLIENT = """
import sys, anyio
from pathlib import Path
from tests.process.scripted import ScriptedMux
BODY = '''
subprocess.Popen(["sleep", "1000"], start_new_session=True)
signal.signal(signal.SIGTERM, signal.SIG_IGN)
read(); emit(text="ready")
while True: time.sleep(100)'''
async def main():
    async with ScriptedMux(Path(sys.argv[1])).client(BODY) as mux:
        runs = [mux.run(prompt="hi") for _ in range(3)]
        for run in runs:
            async for event in run:
                if event.type == "text_delta":
                    break
        print(*(run.run_id for run in runs), flush=True)
        await anyio.sleep(1000)
anyio.run(main)
"""


def wait_until(condition: Callable[[], bool], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        os.sched_yield()
    return condition()


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
def test_no_process_of_any_run_outlives_a_killed_client(tmp_path: Path, number: signal.Signals) -> None:
    client = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(CLIENT), str(tmp_path)],
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[2],
        text=True,
    )
    try:
        assert client.stdout is not None
        run_ids = client.stdout.readline().split()
        assert len(run_ids) == 3
        assert all(temp_dir_of(run_id).is_dir() for run_id in run_ids)
        assert wait_until(lambda: all(len(processes_of(run_id)) >= 2 for run_id in run_ids), 10)
        client.send_signal(number)
        client.wait(10)
        for run_id in run_ids:
            assert wait_until(lambda run_id=run_id: not processes_of(run_id), 10), run_id
            assert wait_until(lambda run_id=run_id: not temp_dir_of(run_id).exists(), 10), run_id
    finally:
        client.kill()
        client.wait(10)
        client.stdout.close()


def _name(pid: int) -> str:
    return Path(f"/proc/{pid}/comm").read_text().strip()


def test_census_finds_children_in_other_sessions() -> None:
    run_id = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
    environment = {**os.environ, marker_variable(run_id): "1"}
    child = subprocess.Popen(
        ["sh", "-c", "setsid sleep 1000 & exec sleep 1000"], env=environment, start_new_session=True
    )
    try:
        assert wait_until(lambda: [_name(pid) for pid in processes_of(run_id)] == ["sleep", "sleep"], 5)
        assert kill_processes_of(run_id) == 2
        assert processes_of(run_id) == []
    finally:
        child.kill()
        child.wait(5)


def test_longer_run_id_with_the_same_prefix_does_not_match() -> None:
    environment = {**os.environ, marker_variable("RUN1") + "0": "1", "X" + marker_variable("RUN1"): "1"}
    child = subprocess.Popen(["sleep", "1000"], env=environment)
    try:
        assert processes_of("RUN1") == []
    finally:
        child.kill()
        child.wait(5)
