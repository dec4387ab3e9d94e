"""Conformance of Hermes with all its recordings."""

from pathlib import Path

from agent_mux_adapters.hermes import ADAPTER
from agent_mux_testing.conformance import AdapterConformance


class TestHermes(AdapterConformance):
    adapter = ADAPTER
    fixtures = Path(__file__).parents[2] / "fixtures"
