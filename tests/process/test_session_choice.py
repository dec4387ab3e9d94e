"""`amux run --continue` and `--pick` with the embedded agent and a scripted model."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.pseudo_terminal import PseudoTerminal

PATIENCE = 60.0
AMUX = (sys.executable, "-m", "agent_mux")


class Machine:
    """A home directory, and working directories in it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for name in ("one", "two"):
            (root / name).mkdir()
        script = root / "script.json"
        script.write_text(json.dumps({"steps": [{"text": "Done."}]}))
        self.run_native = ("run", "native", "--model", f"scripted:{script}", "--yolo")

    @property
    def environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("AMUX", "AGENT_MUX"))}
        return {**kept, "HOME": str(self.root), "AMUX_AGENT_HOME": str(self.root / "agent")}

    def amux(self, *argv: str, cwd: str = "one") -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [*AMUX, *argv], capture_output=True, text=True, check=False, cwd=self.root / cwd, env=self.environment,
            timeout=PATIENCE,
        )  # fmt: skip

    def session(self, *argv: str, cwd: str = "one") -> dict[str, Any]:
        """Run the agent and return its `session_start`."""
        done = self.amux(*self.run_native, "--json", *argv, cwd=cwd)
        assert done.returncode == 0, done.stderr
        events = [json.loads(line) for line in done.stdout.splitlines()]
        return next(each for each in events if each["type"] == "session_start")


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@pytest.mark.slow
def test_continue_resumes_the_last_session_of_the_directory(machine: Machine) -> None:
    machine.session("first")
    last = machine.session("second")["sessionId"]
    machine.session("elsewhere", cwd="two")
    resumed = machine.session("--continue", "third")
    assert (resumed["sessionId"], resumed["resumed"]) == (last, True)


@pytest.mark.slow
def test_continue_finds_a_session_that_was_stored_with_a_symbolic_link(machine: Machine) -> None:
    (machine.root / "link").symlink_to(machine.root / "one")
    first = machine.session("first")["sessionId"]
    stored = machine.root / "agent" / "sessions" / f"{first}.json"
    stored.write_text(stored.read_text().replace(str(machine.root / "one"), str(machine.root / "link")))
    [listed] = json.loads(machine.amux("sessions", "list", "--agent", "native", "--json").stdout)["data"]
    assert listed["cwd"] == str(machine.root / "link")
    resumed = machine.session("--continue", "second")
    assert (resumed["sessionId"], resumed["resumed"]) == (first, True)


def test_continue_without_a_session_is_an_error(machine: Machine) -> None:
    done = machine.amux(*machine.run_native, "--continue", "go")
    assert done.returncode == 2
    assert "no session of native in" in done.stderr
    assert "omit --continue to start one" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--continue", "--pick"), "--continue cannot be combined with --pick"),
        (("--continue", "--session", "x"), "--continue cannot be combined with --session"),
        (("--continue", "--session="), "--continue cannot be combined with --session"),
        (("--pick", "--session-name="), "--pick cannot be combined with --session-name"),
        (("--pick", "--no-session"), "--pick cannot be combined with --no-session"),
        (("--continue", "--server", "http://127.0.0.1:1"), "use --session with --server"),
        (("--pick",), "--pick asks at a terminal"),
    ],
)
def test_flags_that_contradict_are_refused(machine: Machine, flags: tuple[str, ...], message: str) -> None:
    done = machine.amux(*machine.run_native, *flags, "go")
    assert done.returncode == 2
    assert message in done.stderr


@pytest.mark.slow
def test_pick_asks_at_the_terminal(machine: Machine) -> None:
    first = machine.session("first")["sessionId"]
    machine.session("second")
    with PseudoTerminal(
        (*AMUX, *machine.run_native, "--pick", "third"), machine.environment, machine.root / "one", patience=PATIENCE
    ) as terminal:
        terminal.expect("default 1]: ")
        terminal.enter("7")
        terminal.expect("default 1]: ")
        terminal.enter("2")
        assert terminal.finish() == 0
    stored = json.loads((machine.root / "agent" / "sessions" / f"{first}.json").read_text())
    assert len(stored["session"]["loops"]) == 2
