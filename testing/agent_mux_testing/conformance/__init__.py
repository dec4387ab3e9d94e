"""The conformance suite for adapter authors: one test class, `AdapterConformance`.

    from agent_mux_testing.conformance import AdapterConformance

    class TestMyAgent(AdapterConformance):
        adapter = ADAPTER
        fixtures = Path(__file__).parent / "fixtures"

It needs recordings (`amux record` writes them, see `agent_mux_testing.fixtures`) and the extra `agent-mux[testing]`.
The checks themselves are plain functions in the modules of this package.
"""

from typing import TYPE_CHECKING, Any

from agent_mux_testing.conformance.recorded import Recorded

if TYPE_CHECKING:
    from agent_mux_testing.conformance.suite import AdapterConformance

__all__ = ["AdapterConformance", "Recorded"]


def __getattr__(name: str) -> Any:
    """Import the suite, which needs pytest, only on access: `amux replay` and `amux record` do without it."""
    if name != "AdapterConformance":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from agent_mux_testing.conformance.suite import AdapterConformance  # noqa: PLC0415

    return AdapterConformance
