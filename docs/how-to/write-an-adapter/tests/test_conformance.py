"""Qwen Code against every recording of it: the suite that agent-mux ships."""

from pathlib import Path

from amux_qwen import ADAPTER

from agent_mux_testing.conformance import AdapterConformance


class TestQwen(AdapterConformance):
    """See `AdapterConformance`."""

    adapter = ADAPTER
    fixtures = Path(__file__).parents[1] / "fixtures"
