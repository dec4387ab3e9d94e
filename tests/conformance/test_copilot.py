"""Conformance of Copilot with all its recordings."""

from pathlib import Path

from agent_mux_adapters.copilot import ADAPTER
from agent_mux_testing.conformance import AdapterConformance


class TestCopilot(AdapterConformance):
    adapter = ADAPTER
    fixtures = Path(__file__).parents[2] / "fixtures"
