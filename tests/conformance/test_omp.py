"""Conformance of omp with all its recordings."""

from pathlib import Path

from agent_mux_adapters.omp import ADAPTER
from agent_mux_testing.conformance import AdapterConformance


class TestOmp(AdapterConformance):
    adapter = ADAPTER
    fixtures = Path(__file__).parents[2] / "fixtures"
