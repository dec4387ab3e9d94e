"""OpenTelemetry traces and metrics of runs, named by the GenAI semantic conventions.

Calls need `pip install 'agent-mux[otel]'`, which installs the OpenTelemetry API only. The application provides the SDK
and the exporters.

Example:
    async with AgentMux() as mux:
        instrument(mux)
        await mux.run(agent="claude", prompt="fix the failing test", approval_mode="yolo")
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, NoReturn

from agent_mux.errors import MissingExtraError

if TYPE_CHECKING:
    from agent_mux.telemetry.otel.instrumentation import instrument, observe_events
    from agent_mux.telemetry.otel.observer import RunObserver

__all__ = ["RunObserver", "instrument", "observe_events"]


def __getattr__(name: str) -> Any:
    """Import a public name on first use. Without the extra, it is a function that raises MissingExtraError."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        import_module("opentelemetry.trace")
    except ImportError:
        return _raise_missing_extra
    module = "observer" if name == "RunObserver" else "instrumentation"
    return getattr(import_module(f"{__name__}.{module}"), name)


def _raise_missing_extra(*_: Any, **__: Any) -> NoReturn:
    raise MissingExtraError("OpenTelemetry", "otel", code="CAPABILITY_ERROR")
