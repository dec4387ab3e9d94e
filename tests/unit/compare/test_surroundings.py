"""A trial has ports, a temporary directory and a configuration directory that no other trial has."""

import os
import socket
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from agent_mux.compare import surroundings
from agent_mux.compare.surroundings import port_block, trial_surroundings
from agent_mux.errors import AgentMuxError
from agent_mux.sdk.config import AgentPaths
from agent_mux.sdk.installation import ConfigDirectory

CONFIG = ConfigDirectory(
    variable="AGENT_HOME",
    path=lambda place: place.home_of("AGENT_HOME", ".agent"),
    credentials=("auth.json", "missing.json"),
    settings=("settings.json", "sub/more.toml", "none"),
)


def test_surroundings_are_separate_and_removed(tmp_path: Path) -> None:
    source = tmp_path / ".agent"
    (source / "sub").mkdir(parents=True)
    for name in ("auth.json", "settings.json", "sub/more.toml", "history"):
        (source / name).write_text(name)
    place = AgentPaths(environ={"HOME": str(tmp_path)})
    with trial_surroundings(CONFIG, place) as one, trial_surroundings(CONFIG, place) as two:
        config = Path(one.environ["AGENT_HOME"])
        assert sorted(path.name for path in config.iterdir()) == ["auth.json", "settings.json", "sub"]
        assert (config / "auth.json").resolve() == source / "auth.json"
        (config / "settings.json").write_text("changed")
        assert (source / "settings.json").read_text() == "settings.json"
        assert one.environ["TMPDIR"] == one.environ["TMP"] != two.environ["TMPDIR"]
        assert Path(one.environ["TMPDIR"]).stat().st_mode & 0o777 == 0o700
        assert one.environ["PORT"] == one.environ["AMUX_PORT"] == str(one.ports.start)
        assert not set(one.ports) & set(two.ports)
        assert len(one.ports) == int(one.environ["AMUX_PORT_COUNT"]) == surroundings.PORT_COUNT
    assert not one.directory.exists()
    assert (source / "auth.json").read_text() == "auth.json"


def test_agent_without_a_variable_gets_no_configuration_directory(tmp_path: Path) -> None:
    with trial_surroundings(None, AgentPaths(environ={"HOME": str(tmp_path)})) as one:
        assert [path.name for path in one.directory.iterdir()] == ["tmp"]


def test_ports_of_two_processes_differ() -> None:
    code = """from agent_mux.compare.surroundings import port_block
with port_block() as ports:
    print(ports.start, flush=True)
    input()
"""
    with ExitStack() as stack:
        starts = []
        for _ in range(2):
            other = stack.enter_context(
                subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            )
            stack.callback(other.kill)
            assert other.stdout is not None
            starts.append(int(other.stdout.readline()))
        starts += [stack.enter_context(port_block()).start for _ in range(3)]
        assert len(set(starts)) == 5


def test_ports_that_are_in_use_are_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    with port_block() as ports:
        first = ports.start - 1
    monkeypatch.setattr(surroundings, "_FIRST_PORT", first)
    with socket.socket() as server:
        server.bind(("127.0.0.1", first + 3))
        server.listen()
        monkeypatch.setattr(surroundings, "_END_PORT", first + 12)
        with pytest.raises(AgentMuxError, match="10 consecutive ports"), port_block():
            pass
    monkeypatch.setattr(os, "getpid", lambda: 0)
    with port_block() as again:
        assert again == ports
