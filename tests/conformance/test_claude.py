"""Conformance of Claude Code with all its recordings."""

from pathlib import Path

from agent_mux_adapters.claude import ADAPTER
from agent_mux_testing.conformance import AdapterConformance


class TestClaude(AdapterConformance):
    adapter = ADAPTER
    fixtures = Path(__file__).parents[2] / "fixtures"
