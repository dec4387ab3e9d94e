"""`amux --server URL run`: the same command line for runs on a service."""

import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.process.installed_command import REPOSITORY
from tests.process.local_and_remote import ScriptedServer
from tests.process.test_cli_in_process import ASK, HELLO, QUESTION
from tests.pseudo_terminal import PseudoTerminal

from agent_mux.cli.main import main

WORKS = "read(); emit(session='S'); emit(text='on it'); time.sleep(1000)"


class Amux:
    """The command, in this process or at a terminal, with a separate service."""

    def __init__(self, served: ScriptedServer, capfd: pytest.CaptureFixture[str], home: Path) -> None:
        self.served = served
        self._capfd = capfd
        self._home = home

    def __call__(self, *arguments: str, body: str = HELLO) -> tuple[int, str, str]:
        self.served.client(body)
        code = main(["--server", self.served.server.url, "run", *arguments])
        sys.stdout.flush()
        return code, *self._capfd.readouterr()

    def terminal(self, *arguments: str, body: str) -> PseudoTerminal:
        self.served.client(body)
        path = os.pathsep.join([*sys.path, str(REPOSITORY)])
        environment = {"PATH": os.defpath, "HOME": str(self._home), "TERM": "xterm-256color", "PYTHONPATH": path}
        environment["AGENT_MUX_SERVER"] = self.served.server.url
        command = [sys.executable, "-m", "agent_mux.cli.main", "run", *arguments]
        return PseudoTerminal(command, environment, self._home)


@pytest.fixture
def amux(
    shared_server: ScriptedServer, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[Amux]:
    monkeypatch.setattr(sys, "stdin", open(os.devnull))  # noqa: PTH123, SIM115  # not a terminal
    yield Amux(shared_server, capfd, tmp_path)
    sys.stdin.close()


def test_answer_is_on_stdout_and_status_on_stderr(amux: Amux) -> None:
    code, out, err = amux("scripted", "hi")
    assert (code, out) == (0, "hello world\n")
    assert err.startswith("scripted, session S\n+ completed 1 turn")


def test_json_output_equals_the_events_of_the_service(amux: Amux) -> None:
    code, out, _ = amux("scripted", "hi", "--json")
    *events, result = [json.loads(line) for line in out.splitlines()]
    assert (code, result["text"]) == (0, "hello world")
    response = amux.served.server.http.get(
        f"/v1/runs/{result['runId']}/events?accumulated=true", headers={"accept": "application/jsonl"}
    )
    assert [json.loads(line) for line in response.text.splitlines()] == [*events, result]


@pytest.mark.parametrize(
    ("flags", "answer", "warns"), [((), "no", True), (("--yolo",), "yes", False), (("--deny",), "no", False)]
)
def test_approval_mode_decides_without_a_terminal(amux: Amux, flags: Any, answer: str, warns: bool) -> None:
    code, out, err = amux("scripted", "hi", *flags, body=ASK)
    assert (code, out) == (0, f"it was {answer}\n")
    assert ("no terminal to ask on" in err) == warns


def test_flags_become_options_of_the_remote_run(amux: Amux, tmp_path: Path) -> None:
    body = "read(); emit(text=os.getcwd() + os.environ['X']); emit(done=True); drain()"
    code, out, _ = amux("scripted", "hi", "--cwd", str(tmp_path), "--env", "X=!", "--tag", "cli", body=body)
    assert (code, out) == (0, f"{tmp_path}!\n")


def test_refusal_of_the_service_is_one_error_line(amux: Amux) -> None:
    code, out, err = amux("unknown", "hi")
    assert (code, out) == (3, "")
    assert err.startswith("error: no agent is named 'unknown'")


@pytest.mark.slow
def test_approval_is_asked_at_the_terminal(amux: Amux) -> None:
    with amux.terminal("scripted", "hi", body=ASK) as terminal:
        terminal.expect("[a]lways?")
        terminal.type("y\n")
        terminal.expect("it was yes")
        assert terminal.finish() == 0


@pytest.mark.slow
def test_question_is_asked_even_with_yolo(amux: Amux) -> None:
    with amux.terminal("scripted", "hi", "--yolo", body=QUESTION) as terminal:
        terminal.expect("which?")
        terminal.expect("> ")
        terminal.type("2\n")
        terminal.expect("so blue")
        assert terminal.finish() == 0


@pytest.mark.slow
def test_ctrl_c_aborts_the_remote_run(amux: Amux) -> None:
    with amux.terminal("scripted", "hi", "--tag", "ctrl-c", "--grace-period", "0.2", body=WORKS) as terminal:
        terminal.expect("on it")
        terminal.send_signal(signal.SIGINT)
        terminal.expect("aborted")
        assert terminal.finish() == 13
    (run,) = amux.served.server.http.get("/v1/runs", params={"tag": "ctrl-c"}).json()["runs"]
    assert run["state"] == "aborted"
