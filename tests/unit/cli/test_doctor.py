"""`amux doctor`: the state of this machine, and `--drift` with a scripted check."""

import json
from pathlib import Path

import pytest
from tests.unit.cli.conftest import Amux

from agent_mux.errors import AgentMuxError
from agent_mux_testing import drift, offline
from agent_mux_testing.drift import DriftReport, Installation


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Two agents are installed, and nothing else."""
    for name in ("claude", "codex"):
        program = tmp_path / name
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(offline, "enter_offline", lambda: None)
    return tmp_path


def finds(monkeypatch: pytest.MonkeyPatch, **findings: tuple[str, ...]) -> list[Installation]:
    """What looking for drift comes to. Returns what is looked at, once it is."""
    looked_at: list[Installation] = []

    async def find_drift(agent: str, installation: Installation) -> DriftReport:
        looked_at.append(installation)
        return DriftReport(agent=agent, scenarios=("text", "tools"), findings=findings.get(agent, ()))

    monkeypatch.setattr(drift, "find_drift", find_drift)
    return looked_at


def test_without_drift_the_exit_code_is_0(amux: Amux, installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at = finds(monkeypatch)
    assert amux("doctor", "--drift", "codex") == (0, "ok  codex       no drift in 2 scenarios\n", "")
    assert looked_at == [Installation(program=str(installed / "codex"), path=str(installed))]


def test_with_drift_the_exit_code_is_1_and_each_finding_has_a_line(
    amux: Amux, installed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    finds(monkeypatch, claude=("new flag --x", "the flag \x1b[2J--y is gone"))
    done = amux("doctor", "--drift", "claude-code")
    assert (done.code, done.err) == (1, "")
    first, second = done.out.splitlines()
    assert first == "  ! claude      new flag --x"
    assert "\x1b" not in second


@pytest.mark.usefixtures("installed")
def test_without_a_name_all_installed_agents_are_checked(amux: Amux, monkeypatch: pytest.MonkeyPatch) -> None:
    finds(monkeypatch, claude=("new flag --x",))
    done = amux("doctor", "--drift", "--json")
    assert (done.code, done.err) == (1, "")
    looked = {row["check"]: row["ok"] for row in json.loads(done.out)["data"]}
    assert looked == {"claude": False, "codex": True, "native": True}


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--drift", "nosuch"], 3, "nosuch"),
        (["--drift", "cursor"], 3, "no live kit for 'cursor'"),
        (["--drift", "gemini"], 4, "gemini"),
        (["--drift", "--speed", "2"], 2, "--speed"),
    ],
)
def test_an_agent_that_cannot_be_checked_is_not_drift(
    amux: Amux, monkeypatch: pytest.MonkeyPatch, arguments: list[str], code: int, said: str
) -> None:
    looked_at = finds(monkeypatch)
    done = amux("doctor", *arguments)
    assert (done.code, done.out, looked_at) == (code, "", [])
    assert said in done.err


@pytest.mark.usefixtures("installed")
def test_drift_starts_nothing_if_the_network_cannot_be_disabled(amux: Amux, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> None:
        raise OSError("not here")

    monkeypatch.setattr(offline, "enter_offline", refuse)
    looked_at = finds(monkeypatch)
    done = amux("doctor", "--drift")
    assert (done.code, done.out, looked_at) == (12, "", [])
    assert "the network cannot be disabled here (not here)" in done.err


def test_drift_without_installed_agents_is_an_error(
    amux: Amux, installed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(installed / "empty"))
    monkeypatch.setenv("AMUX_NATIVE_EXECUTABLE", str(installed / "empty" / "amux-agent"))
    done = amux("doctor", "--drift")
    assert done.code == 4
    assert "no agent with a drift baseline" in done.err


def test_an_error_of_the_drift_check_is_reported(amux: Amux, installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def find_drift(agent: str, _: Installation) -> DriftReport:
        raise AgentMuxError("CONFIG_ERROR", f"{agent} has no baseline at {installed}")

    monkeypatch.setattr(drift, "find_drift", find_drift)
    done = amux("doctor", "--drift", "codex")
    assert done.code == 7
    assert "codex has no baseline" in done.err
