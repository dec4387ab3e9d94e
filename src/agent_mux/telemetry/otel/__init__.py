"""OpenTelemetry traces and metrics of runs, named by the GenAI semantic conventions.

Needs `pip install 'agent-mux[otel]'`, which installs the OpenTelemetry API only. The application provides the SDK and
the exporters.

Example:
    async with AgentMux() as mux:
        instrument(mux)
        await mux.run(agent="claude", prompt="fix the failing test")
"""

from agent_mux.errors import AgentMuxError

try:
    import opentelemetry.trace as _  # noqa: F401  # a check that it is installed
except ImportError as error:
    missing = "traces and metrics need OpenTelemetry: pip install 'agent-mux[otel]'"
    raise AgentMuxError("CAPABILITY_ERROR", missing) from error

from agent_mux.telemetry.otel.instrument import instrument, observe_events
from agent_mux.telemetry.otel.observer import RunObserver

__all__ = ["RunObserver", "instrument", "observe_events"]
