"""Ctrl-Z at a terminal with job control: the agent and the command stop, and `fg` continues both."""

import os
import time
from pathlib import Path

import pytest
from tests.process.conversations import CHAT_AGENT
from tests.process.installed_command import PATIENCE, Installed
from tests.pseudo_terminal import PseudoTerminal
from ulid import ULID

from agent_mux.process.marker import processes_of

pytestmark = pytest.mark.skipif(
    not (Path("/proc/self/environ").exists() and Path("/bin/bash").exists()), reason="needs /proc and bash"
)
WORKING = """
read(); emit(session='S'); emit(text='first ')
open(os.environ['GO']).read()
emit(text='second'); emit(done=True); drain()
"""


@pytest.fixture
def installed(tmp_path: Path) -> Installed:
    return Installed(tmp_path)


@pytest.fixture
def go(installed: Installed) -> str:
    path = str(installed.home / "go")
    os.mkfifo(path)
    return path


def shell(installed: Installed, body: str, go: str) -> PseudoTerminal:
    """Start an interactive shell with job control, in which `amux` is the installed command."""
    amux = installed.command([])[0]
    environment = installed.environment(body, {"GO": go, "PS1": "shell$ ", "AMUX": amux, "HISTFILE": ""})
    return PseudoTerminal(["/bin/bash", "--norc", "--noprofile", "-i"], environment, installed.home)


def states(run_id: str) -> set[str]:
    """Return the states of the agent's processes, as the kernel reports them: `T` is stopped."""
    return {Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] for pid in processes_of(run_id)}


def wait_for_states(run_id: str, *, stopped: bool) -> None:
    deadline = time.monotonic() + PATIENCE
    while (found := states(run_id)) != {"T"} if stopped else "T" in (found := states(run_id)):
        assert time.monotonic() < deadline, found
        time.sleep(0.02)


@pytest.mark.slow
def test_ctrl_z_stops_the_agent_and_the_command_until_fg(installed: Installed, go: str) -> None:
    run_id = str(ULID())
    with shell(installed, WORKING, go) as terminal:
        terminal.expect("shell$ ")
        terminal.enter(f"$AMUX run scripted hi --run-id {run_id} --inactivity-timeout 2")
        terminal.expect("first")
        terminal.type("\x1a")
        terminal.expect("Stopped")
        terminal.expect("shell$ ")
        wait_for_states(run_id, stopped=True)
        time.sleep(2.5)  # time in which the agent is suspended is not inactivity
        terminal.enter("fg")
        wait_for_states(run_id, stopped=False)
        Path(go).write_text("go")
        terminal.expect("second")
        terminal.expect("completed")
        terminal.expect("shell$ ")
        terminal.enter("echo code $?")
        terminal.expect("code 0")


@pytest.mark.slow
def test_suspended_command_can_continue_in_the_background(installed: Installed, go: str) -> None:
    run_id = str(ULID())
    with shell(installed, WORKING, go) as terminal:
        terminal.expect("shell$ ")
        terminal.enter(f"$AMUX run scripted hi --run-id {run_id}")
        terminal.expect("first")
        terminal.type("\x1a")
        terminal.expect("Stopped")
        terminal.enter("bg")
        wait_for_states(run_id, stopped=False)
        Path(go).write_text("go")
        terminal.expect("second")
        terminal.expect("completed")


@pytest.mark.slow
def test_suspended_run_can_be_ended_by_the_shell(installed: Installed, go: str) -> None:
    run_id = str(ULID())
    with shell(installed, WORKING, go) as terminal:
        terminal.expect("shell$ ")
        terminal.enter(f"$AMUX run scripted hi --run-id {run_id} --grace-period 1")
        terminal.expect("first")
        terminal.type("\x1a")
        terminal.expect("Stopped")
        terminal.enter("kill -9 %1")
        deadline = time.monotonic() + PATIENCE
        while list(processes_of(run_id)):
            assert time.monotonic() < deadline, "the reaper left a stopped agent behind"
            time.sleep(0.05)


@pytest.mark.slow
def test_ctrl_z_in_a_conversation_keeps_the_typed_text(installed: Installed, go: str) -> None:
    run_id = str(ULID())
    with shell(installed, CHAT_AGENT, go) as terminal:
        terminal.expect("shell$ ")
        terminal.enter(f"$AMUX run -i scripted --run-id {run_id}")
        terminal.wait_for_line(">")
        terminal.type("hello wo")
        terminal.wait_for_line("> hello wo")
        terminal.type("\x1a")
        terminal.wait_for_line("[1]+  Stopped")
        wait_for_states(run_id, stopped=True)
        terminal.enter("echo shell $((20+3)) works")  # the shell has the terminal in its usual mode
        terminal.wait_for_line("shell 23 works")
        terminal.enter("fg")
        wait_for_states(run_id, stopped=False)
        terminal.enter("rld")
        terminal.wait_for_line("echo hello world")
        terminal.enter("/exit")
        terminal.wait_for_line("+ completed")


def test_ctrl_z_without_job_control_does_not_stop_the_run(installed: Installed, go: str) -> None:
    with installed.terminal("run", "scripted", "hi", body=WORKING, GO=go) as terminal:  # a session without a shell
        terminal.expect("first")
        terminal.type("\x1a")
        Path(go).write_text("go")
        terminal.expect("second")
        assert terminal.finish() == 0
