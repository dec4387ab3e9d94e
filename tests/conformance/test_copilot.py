"""Copilot against every recording of it."""

from pathlib import Path

from agent_mux.testing.conformance import AdapterConformance
from agent_mux_adapters.copilot import ADAPTER


class TestCopilot(AdapterConformance):
    adapter = ADAPTER
    fixtures = Path(__file__).parents[2] / "fixtures"
