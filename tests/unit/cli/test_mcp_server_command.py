"""`amux mcp-server` without a client."""

import sys
from pathlib import Path

import pytest
from tests.unit.cli.conftest import Amux

from agent_mux.cli.protocol_commands import Approvals
from agent_mux.mcp_server.limits import STRICTEST_FIRST


def test_the_modes_are_those_of_the_limits() -> None:
    assert tuple(mode.value for mode in Approvals) == STRICTEST_FIRST


def test_a_missing_extra_is_reported_with_its_install_command(amux: Amux, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] in {"mcp", "mcp_types"}]:
        monkeypatch.setitem(sys.modules, name, None)
    for name in ("serving", "server"):
        monkeypatch.delitem(sys.modules, f"agent_mux.mcp_server.{name}", raising=False)
    monkeypatch.setitem(sys.modules, "mcp", None)
    done = amux("mcp-server")
    assert (done.code, done.out) == (2, "")
    assert "`amux mcp-server` requires the extra: pip install 'agent-mux[mcp]'" in done.err


def test_an_invalid_inherited_depth_is_rejected(amux: Amux, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("AGENT_MUX_DEPTH", "deep")
    done = amux("mcp-server", "--root", tmp_path)
    assert done.code == 2
    assert "AGENT_MUX_DEPTH is 'deep'; allowed: a whole number >= 0, or unset" in done.err


def test_the_root_directory_is_not_a_default_root(amux: Amux, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/")
    done = amux("mcp-server")
    assert done.code == 2
    assert "the current directory is /, which would allow runs everywhere; restrict them with --root DIR" in done.err
