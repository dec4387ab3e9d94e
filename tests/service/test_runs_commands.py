"""`amux runs ... --server URL`: every command against a service in a process of its own, with a scripted agent."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
from tests.process.control_client import PATIENCE, wait_for
from tests.process.installed_command import Installed

from agent_mux.cli.main import main

ASK = "read(); emit(session='S'); emit(ask='push'); emit(text='it was ' + read()['answer']); emit(done=True); drain()"
QUESTION = "read(); emit(session='S'); emit(question='which?'); emit(text=str(read())); emit(done=True); drain()"
WRITES = (
    "read(); emit(session='S'); open('new.txt', 'w').write('one\\n'); emit(wrote='new.txt'); emit(text='written'); "
    "time.sleep(600)"
)
DONE = "read(); emit(text='finished'); emit(done=True); drain()"
UNKNOWN = "01KZZZZZZZZZZZZZZZZZZZZZZZ"
CODE = "exec(os.environ['BODY'])"
URL = re.compile(rb"http://\S+:\d+")


class Answer(NamedTuple):
    """What a command printed, and its exit code."""

    returncode: int
    stdout: str
    stderr: str


class Served:
    """A service in a process of its own, and the command in this process: starting it takes long on a busy machine."""

    def __init__(self, installed: Installed, work: Path, capfd: pytest.CaptureFixture[str]) -> None:
        self.work, self.installed, self._capfd = work, installed, capfd
        self.process = installed.start("serve", "--port", "0", "--root", str(work), body=CODE)
        assert self.process.stderr is not None
        found = next(filter(None, map(URL.search, self.process.stderr)), None)
        assert found is not None, "the service did not start"
        self.url = found[0].decode()

    def amux(self, *arguments: str) -> Answer:
        self._capfd.readouterr()
        code = main([*arguments, "--server", self.url])
        sys.stdout.flush()
        return Answer(code, *self._capfd.readouterr())

    def data(self, *arguments: str) -> Any:
        answer = self.amux(*arguments, "--json")
        assert answer.returncode == 0, answer.stdout
        return json.loads(answer.stdout)["data"]

    def start(self, body: str) -> str:
        """Start a run with HTTP, so that no client follows it, and return its id."""
        request = {"agent": "scripted", "prompt": "do it", "env": {"BODY": body}, "cwd": str(self.work)}
        answer = httpx.post(f"{self.url}/v1/runs", json={**request, "gracePeriod": 200}, timeout=PATIENCE)
        assert answer.status_code == 201, answer.text
        return str(answer.json()["runId"])

    def stop(self) -> None:
        self.process.terminate()
        self.process.communicate(timeout=PATIENCE)


@pytest.fixture
def served(tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    monkeypatch.setattr(sys, "stdin", open(os.devnull))  # noqa: PTH123, SIM115  # not a terminal
    work = tmp_path / "work"
    work.mkdir()
    git = ["git", "-c", "user.name=x", "-c", "user.email=x@x"]
    for command in (["init", "--quiet"], ["commit", "--quiet", "--allow-empty", "--message", "first"]):
        subprocess.run([*git, *command], cwd=work, check=True, timeout=60)
    served = Served(Installed(tmp_path), work, capfd)
    yield served
    served.stop()
    sys.stdin.close()


def waiting(served: Served, run_id: str) -> Any:
    return wait_for(lambda: (shown := served.data("runs", "show", run_id)).get("pending") and shown)


@pytest.mark.slow
def test_run_is_listed_shown_answered_watched_and_pruned(served: Served) -> None:
    assert served.amux("runs", "list").stderr == "no run matches\n"
    run_id = served.start(ASK)
    shown = waiting(served, run_id)
    assert (shown["state"], shown["request"]["prompt"], shown["cwd"]) == ("running", "do it", str(served.work))
    assert "push" in served.amux("runs", "list", "--state", "alive").stdout
    text = served.amux("runs", "show").stdout
    assert f"amux runs answer {run_id} yes|no|TEXT --server {served.url}" in text
    refused = served.amux("runs", "answer", run_id, "maybe")
    assert (refused.returncode, "answer yes, always or no" in refused.stderr) == (2, True)
    other = served.amux("runs", "answer", run_id, "yes", "--id", "none")
    assert (other.returncode, shown["pending"][0]["id"] in other.stderr) == (1, True)
    assert served.amux("runs", "prune", "--keep", "0").stderr == f"deleted 0 runs of {served.url}\n"
    assert served.amux("runs", "answer", run_id[:20].lower(), "yes").stderr.startswith("applied: approve")
    watched = served.amux("runs", "watch", run_id)
    assert (watched.returncode, watched.stdout) == (0, "it was yes\n")
    events = [json.loads(line) for line in served.amux("runs", "watch", "--json").stdout.splitlines()]
    assert (events[0]["type"], events[-1]["type"], events[-1]["text"]) == ("session_start", "run_result", "it was yes")
    shown = served.data("runs", "show", run_id)
    assert (shown["exitReason"], shown["result"]["text"]) == ("completed", "it was yes")
    assert served.amux("runs", "show", run_id).stdout.endswith("\n\nit was yes\n")
    later = served.start(DONE)
    assert served.amux("runs", "watch", later).returncode == 0
    assert [one["runId"] for one in served.data("runs", "prune", "--keep", "1", "--dry-run")] == [run_id]
    assert served.amux("runs", "prune", "--keep", "1").stderr == f"deleted 1 run of {served.url}\n"
    assert [one["runId"] for one in served.data("runs", "list", "--state", "over")] == [later]
    assert not Path(shown["journal"]).exists()
    assert served.data("runs", "prune", "--older-than", "1d") == []


@pytest.mark.slow
def test_commands_reach_the_agent_and_end_the_run(served: Served) -> None:
    question = served.start(QUESTION)
    waiting(served, question)
    assert served.amux("runs", "answer", question, "2").stderr.startswith("applied: answer")
    assert "blue" in served.amux("runs", "watch", question).stdout
    run_id = served.start(WRITES)
    wait_for(lambda: "new.txt" in served.amux("runs", "diff").stdout)
    assert "+one\n" in served.data("runs", "diff", run_id)["diff"]
    assert served.amux("runs", "steer", run_id, "left").stderr == f"merged: steer to scripted {run_id}\n"
    assert served.amux("runs", "queue", run_id, "right").stderr == f"queued: queue to scripted {run_id}\n"
    assert served.amux("runs", "interrupt", run_id).stderr == f"applied: interrupt to scripted {run_id}\n"
    with served.installed.start("runs", "watch", run_id, "--server", served.url) as watcher:
        assert watcher.stdout is not None
        assert watcher.stderr is not None
        assert watcher.stdout.read(7) == b"written"
        watcher.send_signal(signal.SIGINT)
        assert watcher.wait(60) == 13
        assert f"amux runs abort {run_id} --server {served.url}".encode() in watcher.stderr.read()
    assert served.amux("runs", "abort", run_id).stderr == f"applied: abort to scripted {run_id}\n"
    assert served.amux("runs", "watch", run_id).returncode == 13
    for command in (("steer", "x"), ("queue", "x"), ("answer", "yes"), ("interrupt",)):
        late = served.amux("runs", command[0], run_id, *command[1:])
        expected = f"error: run {run_id} is over (aborted); start a new one [RUN_NOT_ACTIVE]\n"
        assert (late.returncode, late.stderr) == (1, expected)
    assert served.amux("runs", "abort", run_id).stderr.startswith("unneeded: abort")


WITHOUT_ID = ("list", "prune")
COMMANDS: dict[str, tuple[str, ...]] = {
    "list": (),
    "show": (),
    "watch": (),
    "answer": ("yes",),
    "steer": ("x",),
    "queue": ("x",),
    "interrupt": (),
    "abort": (),
    "diff": (),
    "prune": ("--keep", "1"),
}


def commands(run_id: str) -> Iterator[list[str]]:
    for name, rest in COMMANDS.items():
        yield ["runs", name, *(() if name in WITHOUT_ID else (run_id,)), *rest]


@pytest.mark.slow
def test_unknown_runs_and_wrong_tokens_are_refused_with_the_next_step(served: Served, tmp_path: Path) -> None:
    for run_id, step in (
        (UNKNOWN, f"amux runs list --server {served.url}"),
        ("01KZ", f"amux runs list --server {served.url}"),
        ("", f"amux runs list --server {served.url}"),
    ):
        for command in commands(run_id):
            if command[1] not in WITHOUT_ID:
                answer = served.amux(*command)
                assert (answer.returncode, answer.stdout) == (20, "")
                assert step in answer.stderr, (command, answer.stderr)
    nothing = served.amux("runs", "watch")
    assert (nothing.returncode, f"start one with `amux run --server {served.url}`" in nothing.stderr) == (20, True)
    size = served.amux("runs", "prune", "--max-size", "1")
    assert (size.returncode, "amux serve --keep-bytes" in size.stderr) == (2, True)
    created = served.installed.run("tokens", "create", "reader", "--scope", "read", "--json")
    good, wrong = tmp_path / "good", tmp_path / "wrong"
    good.write_text(json.loads(created.stdout)["data"]["token"])
    wrong.write_text("amux_wrong")
    wait_for(lambda: served.amux("runs", "list").returncode == 5)
    for command in commands(UNKNOWN):
        answer = served.amux(*command, "--server-token-file", str(wrong))
        assert (answer.returncode, answer.stdout) == (5, "")
        assert "--server-token-file FILE" in answer.stderr
    assert served.amux("runs", "list", "--server-token-file", str(good)).returncode == 0


def test_unreachable_service_is_reported_with_the_next_step(capfd: pytest.CaptureFixture[str]) -> None:
    for command in commands(UNKNOWN):
        code = main([*command, "--server", "http://127.0.0.1:1"])
        out, err = capfd.readouterr()
        assert (code, out) == (1, ""), command
        assert "check that `amux serve` runs there [UNAVAILABLE]" in err
