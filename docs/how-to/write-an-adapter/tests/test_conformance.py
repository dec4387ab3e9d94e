"""Conformance of Qwen Code with all its recordings."""

from pathlib import Path

from amux_qwen import ADAPTER

from agent_mux_testing.conformance import AdapterConformance


class TestQwen(AdapterConformance):
    """See `AdapterConformance`."""

    adapter = ADAPTER
    fixtures = Path(__file__).parents[1] / "fixtures"
