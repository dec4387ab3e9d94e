"""The suite that every adapter passes, for adapter authors: one class, see `AdapterConformance`.

    from agent_mux.testing.conformance import AdapterConformance

    class TestMyAgent(AdapterConformance):
        adapter = ADAPTER
        fixtures = Path(__file__).parent / "fixtures"

It needs recordings (`amux record` makes them, see `agent_mux.testing.fixtures`) and the extra `agent-mux[testing]`. The
checks themselves are plain functions, in the modules of this package.
"""

from agent_mux.testing.conformance.recorded import Recorded
from agent_mux.testing.conformance.suite import AdapterConformance

__all__ = ["AdapterConformance", "Recorded"]
