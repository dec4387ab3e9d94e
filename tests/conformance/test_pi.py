"""Conformance of pi with all its recordings."""

from pathlib import Path

from agent_mux_adapters.pi import ADAPTER
from agent_mux_testing.conformance import AdapterConformance


class TestPi(AdapterConformance):
    adapter = ADAPTER
    fixtures = Path(__file__).parents[2] / "fixtures"
