"""`amux acp` without an editor."""

import sys

import pytest
from tests.unit.cli.conftest import Amux


def test_a_missing_extra_is_reported_with_its_install_command(amux: Amux, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "acp" or "acp_agent" in name]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "acp", None)
    done = amux("acp", "--agent", "claude")
    assert (done.code, done.out) == (2, "")
    assert "requires the extra: pip install 'agent-mux[acp]'" in done.err
    assert "Traceback" not in done.err


def test_help_lists_only_applicable_run_flags(amux: Amux) -> None:
    told = amux("acp", "--help").out
    assert "--model" in told
    assert "--policy" in told
    assert "--session " not in told
    assert "--json" not in told


@pytest.mark.parametrize("flag", ["--continue", "--pick", "--session-name=x", "--detach"])
def test_flags_for_sessions_and_processes_of_one_run_are_refused(amux: Amux, flag: str) -> None:
    done = amux("acp", "--agent", "claude", flag)
    assert done.code == 2
    assert "no such option" in done.err
