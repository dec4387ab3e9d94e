"""Conformance of Codex with all its recordings."""

from pathlib import Path

from agent_mux_adapters.codex import ADAPTER
from agent_mux_testing.conformance import AdapterConformance


class TestCodex(AdapterConformance):
    adapter = ADAPTER
    fixtures = Path(__file__).parents[2] / "fixtures"
