"""Conformance of terminal programs with all their recordings, whose screens are read when quiet."""

from pathlib import Path

import pytest

from agent_mux_adapters.terminal import ADAPTER
from agent_mux_testing.conformance import AdapterConformance

pytest.importorskip("pyte")


class TestTerminal(AdapterConformance):
    adapter = ADAPTER
    fixtures = Path(__file__).parents[2] / "fixtures"
