"""Conformance of OpenCode with all its recordings."""

from pathlib import Path

from agent_mux_adapters.opencode import ADAPTER
from agent_mux_testing.conformance import AdapterConformance


class TestOpencode(AdapterConformance):
    adapter = ADAPTER
    fixtures = Path(__file__).parents[2] / "fixtures"
