"""Commands without a network. Each command is bounded."""

import os
import subprocess
import sys

import pytest

from agent_mux_testing import offline
from agent_mux_testing.offline import ALLOW_NETWORK, EXIT_REFUSED

BOUND = 60.0
PROBE = """
import socket
from agent_mux_testing.offline import is_offline
server = socket.create_server(("127.0.0.1", 0))
socket.create_connection(server.getsockname(), 5).close()
print("offline" if is_offline() else "online")
"""


def run(*command: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    whole = [sys.executable, "-m", "agent_mux_testing.offline", *command]
    inherited = {name: value for name, value in os.environ.items() if name != ALLOW_NETWORK}
    return subprocess.run(
        whole, env={**inherited, **environment}, capture_output=True, text=True, timeout=BOUND, check=False
    )


def test_a_command_sees_only_the_loopback_which_works() -> None:
    done = run("--", sys.executable, "-c", PROBE)
    if done.returncode == EXIT_REFUSED:
        pytest.skip(done.stderr)
    assert (done.stdout, done.stderr, done.returncode) == ("offline\n", "", 0)


def test_the_exit_code_is_the_commands_own() -> None:
    assert run("--", "sh", "-c", "exit 5", **{ALLOW_NETWORK: "1"}).returncode == 5
    assert run("--", "/nonexistent", **{ALLOW_NETWORK: "1"}).returncode == 127
    assert run().returncode == 2


def test_without_namespaces_it_refuses_with_a_hint(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _make_impossible(monkeypatch)
    monkeypatch.delenv(ALLOW_NETWORK, raising=False)
    assert offline.main() == EXIT_REFUSED
    assert f"set {ALLOW_NETWORK}=1" in capsys.readouterr().err


def test_the_network_can_be_allowed_but_not_in_silence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _make_impossible(monkeypatch)
    monkeypatch.setenv(ALLOW_NETWORK, "1")
    assert offline.main() == 127
    assert "warning: the network stays on" in capsys.readouterr().err


def _make_impossible(monkeypatch: pytest.MonkeyPatch) -> None:
    def impossible() -> None:
        raise OSError(1, "not permitted")

    monkeypatch.setattr(offline, "enter_offline", impossible)
    monkeypatch.setattr(sys, "argv", ["offline", "--", "/nonexistent"])
