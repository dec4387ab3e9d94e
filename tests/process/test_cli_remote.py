"""`amux --server URL run`: the same command line for a run on a service."""

import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.process.everywhere import Served
from tests.process.installed import REPOSITORY, Terminal
from tests.process.test_cli_in_process import ASK, HELLO, QUESTION

from agent_mux.cli.main import main

WORKS = "hear(); say(session='S'); say(text='on it'); time.sleep(1000)"


class Amux:
    """The command, in this process or at a terminal; its service is elsewhere."""

    def __init__(self, served: Served, capfd: pytest.CaptureFixture[str], home: Path) -> None:
        self.served = served
        self._capfd = capfd
        self._home = home

    def __call__(self, *arguments: str, body: str = HELLO) -> tuple[int, str, str]:
        self.served.client(body)
        code = main(["--server", self.served.server.url, "run", *arguments])
        sys.stdout.flush()
        return code, *self._capfd.readouterr()

    def terminal(self, *arguments: str, body: str) -> Terminal:
        self.served.client(body)
        path = os.pathsep.join([*sys.path, str(REPOSITORY)])
        environment = {"PATH": os.defpath, "HOME": str(self._home), "TERM": "xterm-256color", "PYTHONPATH": path}
        environment["AGENT_MUX_SERVER"] = self.served.server.url
        command = [sys.executable, "-m", "agent_mux.cli.main", "run", *arguments]
        return Terminal(command, environment, self._home)


@pytest.fixture
def amux(
    shared_server: Served, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[Amux]:
    monkeypatch.setattr(sys, "stdin", open(os.devnull))  # noqa: PTH123, SIM115  # nobody
    yield Amux(shared_server, capfd, tmp_path)
    sys.stdin.close()


def test_for_a_person(amux: Amux) -> None:
    code, out, err = amux("scripted", "hi")
    assert (code, out) == (0, "hello world\n")
    assert err.startswith("scripted, session S\n+ completed 1 turn")


def test_for_a_program(amux: Amux) -> None:
    code, out, _ = amux("scripted", "hi", "--json")
    *events, result = [json.loads(line) for line in out.splitlines()]
    assert (code, result["text"]) == (0, "hello world")
    told = amux.served.server.http.get(f"/v1/runs/{result['runId']}/events", headers={"accept": "application/jsonl"})
    assert [json.loads(line) for line in told.text.splitlines()] == [*events, result]


@pytest.mark.parametrize(
    ("flags", "answer", "warns"), [((), "no", True), (("--yolo",), "yes", False), (("--deny",), "no", False)]
)
def test_without_a_terminal_the_mode_decides(amux: Amux, flags: Any, answer: str, warns: bool) -> None:
    code, out, err = amux("scripted", "hi", *flags, body=ASK)
    assert (code, out) == (0, f"it was {answer}\n")
    assert ("no terminal to ask on" in err) == warns


def test_flags_are_options_of_the_service(amux: Amux, tmp_path: Path) -> None:
    body = "hear(); say(text=os.getcwd() + os.environ['X']); say(done=True); rest()"
    code, out, _ = amux("scripted", "hi", "--cwd", str(tmp_path), "--env", "X=!", "--tag", "cli", body=body)
    assert (code, out) == (0, f"{tmp_path}!\n")


def test_what_the_service_refuses_is_one_line(amux: Amux) -> None:
    code, out, err = amux("nobody", "hi")
    assert (code, out) == (3, "")
    assert err.startswith("error: no agent is named 'nobody'")


def test_a_person_is_asked(amux: Amux) -> None:
    with amux.terminal("scripted", "hi", body=ASK) as terminal:
        terminal.expect("[a]lways?")
        terminal.type("y\n")
        terminal.expect("it was yes")
        assert terminal.finish() == 0


def test_a_person_is_asked_a_question_also_where_everything_is_allowed(amux: Amux) -> None:
    with amux.terminal("scripted", "hi", "--yolo", body=QUESTION) as terminal:
        terminal.expect("which?")
        terminal.expect("> ")
        terminal.type("2\n")
        terminal.expect("so blue")
        assert terminal.finish() == 0


def test_ctrl_c_aborts_the_run_at_the_service(amux: Amux) -> None:
    with amux.terminal("scripted", "hi", "--tag", "ctrl-c", "--grace-period", "0.2", body=WORKS) as terminal:
        terminal.expect("on it")
        terminal.process.send_signal(signal.SIGINT)
        terminal.expect("aborted")
        assert terminal.finish() == 13
    (run,) = amux.served.server.http.get("/v1/runs", params={"tag": "ctrl-c"}).json()["runs"]
    assert run["state"] == "aborted"
