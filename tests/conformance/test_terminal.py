"""Programs at a terminal against every recording of one: their screens, read whenever they came to rest."""

from pathlib import Path

import pytest

from agent_mux.testing.conformance import AdapterConformance
from agent_mux_adapters.terminal import ADAPTER

pytest.importorskip("pyte")


class TestTerminal(AdapterConformance):
    adapter = ADAPTER
    fixtures = Path(__file__).parents[2] / "fixtures"
