"""`amux demo` without a run."""

import sys

import pytest
from tests.unit.cli.conftest import Amux


def test_missing_pytest_is_reported_with_its_install_command(amux: Amux, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pytest", None)
    done = amux("demo")
    assert (done.code, done.out) == (2, "")
    assert "`amux demo` runs tests, which requires the extra: pip install 'agent-mux[demo]'" in done.err
