"""Conformance of OpenClaw with all its recordings."""

from pathlib import Path

from agent_mux_adapters.openclaw import ADAPTER
from agent_mux_testing.conformance import AdapterConformance


class TestOpenClaw(AdapterConformance):
    adapter = ADAPTER
    fixtures = Path(__file__).parents[2] / "fixtures"
