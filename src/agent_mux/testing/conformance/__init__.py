"""The suite that every adapter passes, for adapter authors: one class, see `AdapterConformance`.

    from agent_mux.testing.conformance import AdapterConformance

    class TestMyAgent(AdapterConformance):
        adapter = ADAPTER
        fixtures = Path(__file__).parent / "fixtures"

It needs recordings (`amux record` makes them, see `agent_mux.testing.fixtures`) and the extra `agent-mux[testing]`. The
checks themselves are plain functions, in the modules of this package.
"""

from typing import TYPE_CHECKING, Any

from agent_mux.testing.conformance.recorded import Recorded

if TYPE_CHECKING:
    from agent_mux.testing.conformance.suite import AdapterConformance

__all__ = ["AdapterConformance", "Recorded"]


def __getattr__(name: str) -> Any:
    """Only the suite needs pytest: `amux replay` and `amux record` read recordings without them."""
    if name != "AdapterConformance":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from agent_mux.testing.conformance.suite import AdapterConformance  # noqa: PLC0415

    return AdapterConformance
