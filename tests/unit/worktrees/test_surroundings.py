"""A run in a directory of its own has ports and a temporary directory that no other run has."""

import os
import socket
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from agent_mux.errors import AgentMuxError
from agent_mux.worktrees import surroundings
from agent_mux.worktrees.surroundings import own_variables, port_block


def test_variables_that_the_caller_sets_are_left_out(tmp_path: Path) -> None:
    with own_variables(tmp_path, {"PORT": "8080"}) as own:
        assert sorted(own) == ["AMUX_PORT", "AMUX_PORT_COUNT", "TEMP", "TMP", "TMPDIR"]
        assert own["TMPDIR"] == str(tmp_path / "tmp")
        assert (tmp_path / "tmp").stat().st_mode & 0o777 == 0o700


def test_directory_that_cannot_be_created_is_an_error(tmp_path: Path) -> None:
    with (
        pytest.raises(AgentMuxError, match="missing/tmp cannot be created: No such file"),
        own_variables(tmp_path / "missing"),
    ):
        pass


def test_ports_of_two_processes_differ() -> None:
    code = """from agent_mux.worktrees.surroundings import port_block
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
