"""Two servers with one instance id and one database: each run starts once, and no server ends agents of another."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.service.durable.processes import PATIENCE, REPOSITORY, ServerProcess, until

from agent_mux.process.marker import processes_of
from agent_mux.service.instance import LOCK_FILE, PLACE_FILE, InstancePlace
from agent_mux.service.owner import Life, Owner

RUN = """
run = next(name for name in os.environ if name.startswith("AGENT_MUX_RUN_"))
fd = os.open({starts!r}, os.O_WRONLY | os.O_APPEND); os.write(fd, (run + "\\n").encode())
read(); emit(session="s"); emit(text="working ")
while not os.path.exists({go!r}): time.sleep(0.02)
emit(text="done"); emit(over=True); emit(done=True); drain()
"""
PLACE = InstancePlace(device=1, inode=2, machine="m")


class Pair:
    """Two directories with one instance id, one database, and an agent that notes its starts."""

    def __init__(self, tmp_path: Path, url: str) -> None:
        self.one, self.two = tmp_path / "one", tmp_path / "two"
        self.go, self.starts = tmp_path / "go", tmp_path / "starts"
        self.starts.touch()
        self.url = url
        self._body = RUN.format(starts=str(self.starts), go=str(self.go))

    def serve(self, directory: Path, **chosen: Any) -> ServerProcess:
        return ServerProcess(directory, self._body, database=self.url, **{"max_concurrent_runs": 1, **chosen})

    def copy(self) -> None:
        """Make the second one, which takes itself for the first."""
        shutil.copytree(self.one, self.two, ignore=shutil.ignore_patterns("*.lock"))
        (self.two / "service" / PLACE_FILE).unlink()

    def started(self) -> list[str]:
        return [line.removeprefix("AGENT_MUX_RUN_") for line in self.starts.read_text().split()]


@pytest.fixture
def pair(tmp_path: Path, database_url: str) -> Pair:
    return Pair(tmp_path, database_url)


def over(server: ServerProcess, run_id: str) -> str | None:
    return server.run(run_id).get("exitReason")


def outcomes(server: ServerProcess, runs: list[str]) -> list[str | None]:
    """How each run ends."""
    until(lambda: all(over(server, run) for run in runs))
    return [over(server, run) for run in runs]


@pytest.mark.slow
def test_each_waiting_run_starts_once_and_no_agent_is_ended_by_the_other(pair: Pair) -> None:
    with pair.serve(pair.one) as one:
        working = one.create()
        until(lambda: pair.started() == [working])
        waiting = [one.create() for _ in range(6)]
        pair.copy()
        os.kill(one.process.pid, signal.SIGSTOP)  # it notices nothing
        agents = processes_of(working)
        with pair.serve(pair.two, max_concurrent_runs=2) as two:
            assert processes_of(working) == agents, "the second server ended an agent of the first"
            until(lambda: len(pair.started()) == 3)
            pair.go.touch()
            os.kill(one.process.pid, signal.SIGCONT)
            assert outcomes(two, waiting) == ["completed"] * 6
            until(lambda: not processes_of(working))
            assert sorted(pair.started()) == sorted([working, *waiting])
            assert one.http.post("/v1/runs", json={"agent": "scripted", "prompt": "hi"}).status_code == 503


@pytest.mark.slow
def test_a_killed_server_is_recovered_by_the_other(pair: Pair) -> None:
    with pair.serve(pair.one) as one:
        first = one.create()
        until(lambda: pair.started() == [first])
        waiting = [one.create() for _ in range(3)]
        pair.copy()
        os.kill(one.reapers()[0], signal.SIGKILL)
        one.end(signal.SIGKILL)
        assert processes_of(first)
        with pair.serve(pair.two) as two:
            assert not processes_of(first), "what a dead server left was not ended"
            assert two.run(first)["state"] == "lost"
            pair.go.touch()
            assert outcomes(two, waiting) == ["completed"] * 3
            until(lambda: len(two.runs(state="completed")) == 3)  # their outcomes are written
            two.end(signal.SIGKILL)
        with pair.serve(pair.one) as one_again:
            assert [over(one_again, run) for run in waiting] == ["completed"] * 3
        assert sorted(pair.started()) == sorted([first, *waiting])


@pytest.mark.slow
def test_a_second_server_in_one_directory_is_refused_without_the_lock(pair: Pair) -> None:
    with pair.serve(pair.one) as one:
        working = one.create()
        until(lambda: pair.started() == [working])
        (pair.one / "service" / LOCK_FILE).unlink()
        settings = json.dumps({"database": pair.url})
        words = [sys.executable, "-m", "tests.service.durable.server", str(pair.one), settings, ""]
        second = subprocess.run(words, cwd=REPOSITORY, capture_output=True, text=True, timeout=PATIENCE, check=False)
        assert second.returncode != 0
        assert f"(process {one.process.pid}) uses the same directory" in second.stderr
        assert processes_of(working)
        pair.go.touch()
        assert until(lambda: over(one, working)) == "completed"


def test_what_is_known_about_an_owner() -> None:
    own = Owner.of_process(PLACE)
    elsewhere = InstancePlace(device=1, inode=3, machine="m")
    changed = Owner(place=PLACE, pid=own.pid, started=own.started + 1, boot=own.boot, namespace=own.namespace)
    parent = Owner(place=PLACE, pid=1, started=0, boot=own.boot, namespace=own.namespace)
    remote = InstancePlace(device=1, inode=2, machine="another")
    assert own.life_for(own) is Life.DEAD, "an earlier service of this process"
    assert own.life_for(Owner.of_process(elsewhere)) is Life.ALIVE
    assert changed.life_for(own) is Life.DEAD, "the process id was used again"
    assert parent.life_for(own) is Life.UNKNOWN
    assert own.life_for(Owner.of_process(remote)) is Life.UNKNOWN
    assert Owner.decode(own.encode()) == own
    assert Owner.decode("{}") is None
