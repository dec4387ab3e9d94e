"""Conformance of Cursor with fixtures that were written by hand from its documented format."""

from pathlib import Path

from agent_mux_adapters.cursor import ADAPTER
from agent_mux_testing.conformance import AdapterConformance


class TestCursor(AdapterConformance):
    adapter = ADAPTER
    fixtures = Path(__file__).parents[2] / "fixtures"
