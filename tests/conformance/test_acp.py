"""Conformance of the adapter for any ACP agent with its recordings."""

from pathlib import Path

from agent_mux_adapters.acp import ADAPTER
from agent_mux_testing.conformance import AdapterConformance


class TestAcp(AdapterConformance):
    adapter = ADAPTER
    fixtures = Path(__file__).parents[2] / "fixtures"
