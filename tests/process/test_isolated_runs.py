"""A run whose command has a prefix that hides places: same supervision, and no process survives."""

import os
import signal
import subprocess
import sys
import textwrap
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.process.scripted import ScriptedMux
from tests.process.test_reaper import wait_until

from agent_mux.client import local
from agent_mux.compare.isolation import Isolation
from agent_mux.process.marker import processes_of
from agent_mux.run.environment import temp_dir_of
from agent_mux.run.plan import RunPlan, plan_run

CLIENT = """
import sys, anyio
from dataclasses import replace
from pathlib import Path
from agent_mux.client import local
from agent_mux.compare.isolation import Isolation
from agent_mux.run.plan import plan_run
from tests.process.scripted import ScriptedMux
place, workspace = Path(sys.argv[1]), Path(sys.argv[2])
prefix = Isolation("required", [place], []).prefix_for(workspace, workspace)
local.plan_run = lambda *a, **k: replace(plan_run(*a, **k), command_prefix=prefix)
BODY = '''
subprocess.Popen(["sleep", "1000"], start_new_session=True)
signal.signal(signal.SIGTERM, signal.SIG_IGN)
read(); emit(text="ready")
while True: time.sleep(100)'''
async def main():
    async with ScriptedMux(place / "mux").client(BODY) as mux:
        run = mux.run(prompt="hi", cwd=workspace)
        async for event in run:
            if event.type == "text_delta":
                break
        print(run.run_id, flush=True)
        await anyio.sleep(1000)
anyio.run(main)
"""
BODY = """
read()
def names(place): return sorted(os.listdir(place))
emit(text=json.dumps([names(PLACE), os.getcwd(), os.getpid() == os.getpgid(0)]))
open("made", "w").close()
emit(over=1); emit(done=1); drain()
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Return a hidden directory with a workspace."""
    place = tmp_path / "hidden"
    (place / "workspace").mkdir(parents=True)
    reason = Isolation("auto", [place], []).reason
    if reason is not None:
        pytest.skip(reason)
    return place


@pytest.mark.anyio
@pytest.mark.parametrize("stdout", ["pipe", "file"])
async def test_isolated_run_completes_in_its_workspace(
    stdout: str, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = place / "workspace"
    prefix = Isolation("auto", [place], []).prefix_for(workspace, workspace)

    def plan(*arguments: Any, **options: Any) -> RunPlan:
        return replace(plan_run(*arguments, **options), command_prefix=prefix)

    monkeypatch.setattr(local, "plan_run", plan)
    body = BODY.replace("PLACE", repr(str(place)))
    async with ScriptedMux(place / "mux").client(body, stdout=stdout) as mux:
        result = await mux.run(prompt="hi", cwd=workspace)
    assert result.exit_reason == "completed"
    assert result.text == f'[["workspace"], "{workspace}", true]'
    assert (workspace / "made").exists()


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_no_isolated_process_outlives_a_killed_client(place: Path, number: signal.Signals) -> None:
    client = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(CLIENT), str(place), str(place / "workspace")],
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[2],
        text=True,
    )
    try:
        assert client.stdout is not None
        run_id = client.stdout.readline().strip()
        assert len(processes_of(run_id)) >= 2
        client.send_signal(number)
        client.wait(30)
        assert wait_until(lambda: not processes_of(run_id), 30)
        assert wait_until(lambda: not temp_dir_of(run_id).exists(), 30)
        assert str(place) not in os.fsdecode(Path("/proc/self/mountinfo").read_bytes())
    finally:
        client.kill()
        client.wait(30)
        client.stdout.close()
