"""`amux demo`, as far as nothing is run."""

import sys

import pytest
from tests.unit.cli.conftest import Amux


def test_without_pytest_it_says_what_to_install(amux: Amux, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pytest", None)
    done = amux("demo")
    assert (done.code, done.out) == (2, "")
    assert "`amux demo` runs tests, which requires the extra: pip install 'agent-mux[demo]'" in done.err
