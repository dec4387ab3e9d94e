"""Conformance of the embedded agent with all its recordings."""

from pathlib import Path

from agent_mux_adapters.native import ADAPTER
from agent_mux_testing.conformance import AdapterConformance


class TestNative(AdapterConformance):
    adapter = ADAPTER
    fixtures = Path(__file__).parents[2] / "fixtures"
