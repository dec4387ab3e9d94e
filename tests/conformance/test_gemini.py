"""Conformance of Gemini with all its recordings."""

from pathlib import Path

from agent_mux_adapters.gemini import ADAPTER
from agent_mux_testing.conformance import AdapterConformance


class TestGemini(AdapterConformance):
    adapter = ADAPTER
    fixtures = Path(__file__).parents[2] / "fixtures"
