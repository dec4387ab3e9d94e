"""`amux run --detach` and `amux runs`: a run that outlives its shell, watched and answered from others."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from tests.process.control_client import wait_for
from tests.process.installed_command import Installed
from tests.pseudo_terminal import PseudoTerminal

from agent_mux.control.places import sockets
from agent_mux.process.marker import processes_of

pytestmark = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs /proc")

ASK = "read(); emit(session='S'); emit(ask='push'); emit(text='it was ' + read()['answer']); emit(done=True); drain()"
SPEAKS = """
read(); emit(session='S'); emit(text='started')
while not os.path.exists({go!r}): time.sleep(0.02)
for _ in range(3000):
    emit(text='more'); time.sleep(0.02)
"""
LONG = "read(); emit(session='S'); emit(text='started'); drain(); time.sleep(600)"


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Installed:
    monkeypatch.setenv("AGENT_MUX_RUNTIME_DIR", str(tmp_path / "runtime"))
    return Installed(tmp_path)


def amux(installed: Installed, *arguments: object, body: str = "") -> "subprocess.CompletedProcess[str]":
    return installed.run(*arguments, body=body, AGENT_MUX_RUNTIME_DIR=os.environ["AGENT_MUX_RUNTIME_DIR"])


def show(installed: Installed, run_id: str) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(amux(installed, "runs", "show", run_id, "--json").stdout)["data"]
    return data


def detach(installed: Installed, body: str) -> str:
    started = amux(installed, "run", "scripted", "hi", "--detach", body=body)
    assert (started.returncode, started.stderr) == (0, "")
    return started.stdout.strip()


@pytest.mark.slow
def test_detached_run_waits_for_an_answer_and_leaves_nothing_behind(installed: Installed) -> None:
    run_id = detach(installed, ASK)
    waiting = wait_for(lambda: (record := show(installed, run_id)).get("pending") and record)
    assert waiting["state"] == "running"
    assert "push" in amux(installed, "runs", "list").stdout
    refused = amux(installed, "runs", "answer", run_id, "maybe")
    assert (refused.returncode, "answer yes, always or no" in refused.stderr) == (2, True)
    assert amux(installed, "runs", "answer", run_id[:15].lower(), "yes").stderr.startswith("applied: approve")
    watched = amux(installed, "runs", "watch")
    assert (watched.returncode, watched.stdout) == (0, "it was yes\n")
    wait_for(lambda: not Path(f"/proc/{waiting['pid']}").exists())
    assert list(sockets(installed.home / "config")) == []
    assert processes_of(run_id) == []
    shown = show(installed, run_id)
    assert (shown["exitReason"], shown["result"]["text"]) == ("completed", "it was yes")
    assert amux(installed, "runs", "abort", run_id).stderr == f"unneeded: abort to scripted {run_id}\n"
    late = amux(installed, "runs", "steer", run_id, "more", "--json")
    assert json.loads(late.stdout)["error"]["code"] == "RUN_NOT_ACTIVE"


@pytest.mark.slow
def test_killing_the_supervisor_ends_the_agent_and_the_watcher(installed: Installed) -> None:
    run_id = detach(installed, LONG)
    pid = wait_for(lambda: show(installed, run_id).get("pid"))
    environment = installed.environment("", {"AGENT_MUX_RUNTIME_DIR": os.environ["AGENT_MUX_RUNTIME_DIR"]})
    command = installed.command(("runs", "watch", run_id))
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL) as watcher:
        assert watcher.stdout is not None
        assert watcher.stdout.read(7) == b"started"
        os.kill(pid, signal.SIGKILL)
        assert watcher.wait(60) == 18
    wait_for(lambda: not processes_of(run_id))
    assert show(installed, run_id)["state"] == "lost"
    assert list(sockets(installed.home / "config")) == []


@pytest.mark.slow
def test_interrupted_watcher_leaves_the_run_alone_until_it_is_aborted(installed: Installed) -> None:
    run_id = detach(installed, LONG)
    environment = installed.environment("", {"AGENT_MUX_RUNTIME_DIR": os.environ["AGENT_MUX_RUNTIME_DIR"]})
    command = installed.command(("runs", "watch", run_id))
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL
    ) as watcher:
        assert watcher.stdout is not None
        assert watcher.stderr is not None
        assert watcher.stdout.read(7) == b"started"
        watcher.send_signal(signal.SIGINT)
        assert watcher.wait(60) == 13
        assert b"the run continues" in watcher.stderr.read()
    assert show(installed, run_id)["state"] == "running"
    assert amux(installed, "runs", "abort", run_id).returncode == 0
    assert show(installed, run_id)["state"] == "aborted"


@pytest.mark.slow
@pytest.mark.parametrize("leave", ["ctrl-d", "hang-up"])
def test_watcher_whose_terminal_ends_leaves_the_request_pending(
    installed: Installed, tmp_path: Path, leave: str
) -> None:
    run_id = detach(installed, ASK)
    environment = installed.environment("", {"AGENT_MUX_RUNTIME_DIR": os.environ["AGENT_MUX_RUNTIME_DIR"]})
    command = installed.command(("runs", "watch", run_id))
    with PseudoTerminal(command, {**environment, "TERM": "xterm"}, tmp_path) as terminal:
        terminal.expect("[y]es / [n]o / [a]lways?")
        if leave == "ctrl-d":
            terminal.type("\x04")
            terminal.expect("the run continues")
            assert terminal.wait() == 13
        else:
            terminal.hang_up()
    wait_for(lambda: show(installed, run_id)["state"] == "running" and show(installed, run_id)["pending"])
    assert amux(installed, "runs", "answer", run_id, "yes").returncode == 0
    assert amux(installed, "runs", "watch", run_id).stdout == "it was yes\n"


@pytest.mark.slow
def test_errors_of_the_options_are_reported_before_anything_is_detached(installed: Installed) -> None:
    unknown = amux(installed, "run", "nobody", "hi", "--detach")
    assert (unknown.returncode, unknown.stdout) == (3, "")
    both = amux(installed, "run", "scripted", "hi", "--detach", "--interactive")
    assert both.returncode == 2
    assert amux(installed, "runs", "list").stderr == "no run matches\n"


@pytest.mark.slow
def test_prune_deletes_the_oldest_recordings_and_reports_them_first(installed: Installed) -> None:
    done = "read(); emit(done=True); drain()"
    for _ in range(3):
        installed.run("run", "scripted", "hi", body=done)
        time.sleep(0.01)
    assert "would delete 2 recordings" in amux(installed, "runs", "prune", "--keep", "1", "--dry-run").stderr
    assert "deleted 2 recordings" in amux(installed, "runs", "prune", "--keep", "1").stderr
    assert len(json.loads(amux(installed, "runs", "list", "--json").stdout)["data"]) == 1


@pytest.mark.slow
@pytest.mark.parametrize("flags", [(), ("--json",)], ids=["text", "json"])
def test_watcher_whose_output_is_closed_ends_and_leaves_the_run_alone(
    installed: Installed, tmp_path: Path, flags: tuple[str, ...]
) -> None:
    go = tmp_path / "go"
    run_id = detach(installed, SPEAKS.format(go=str(go)))
    environment = installed.environment("", {"AGENT_MUX_RUNTIME_DIR": os.environ["AGENT_MUX_RUNTIME_DIR"]})
    command = installed.command(("runs", "watch", run_id, *flags))
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL
    ) as watcher:
        assert watcher.stdout is not None
        assert watcher.stderr is not None
        assert watcher.stdout.read(1)
        watcher.stdout.close()
        go.touch()
        assert watcher.wait(60) == 141
        assert b"Traceback" not in watcher.stderr.read()
    assert show(installed, run_id)["state"] == "running"
    assert amux(installed, "runs", "abort", run_id).returncode == 0
    assert show(installed, run_id)["state"] == "aborted"
