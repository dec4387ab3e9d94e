"""`amux acp`, as far as there is no editor."""

import sys

import pytest
from tests.unit.cli.conftest import Amux


def test_without_the_extra_it_says_what_to_install(amux: Amux, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "acp" or "acp_agent" in name]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "acp", None)
    done = amux("acp", "--agent", "claude")
    assert (done.code, done.out) == (2, "")
    assert "requires the extra: pip install 'agent-mux[acp]'" in done.err
    assert "Traceback" not in done.err


def test_help_has_the_flags_of_a_run_that_say_something_here(amux: Amux) -> None:
    told = amux("acp", "--help").out
    assert "--model" in told
    assert "--policy" in told
    assert "--session " not in told
    assert "--json" not in told
