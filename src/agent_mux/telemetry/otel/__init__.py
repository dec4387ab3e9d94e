"""OpenTelemetry: a trace of each run, and metrics of all, by the GenAI semantic conventions.

Needs `pip install 'agent-mux[otel]'`, which is the API alone: the application brings the SDK and says where things go.

Example:
    async with AgentMux() as mux:
        instrument(mux)
        await mux.run(agent="claude", prompt="fix the failing test")
"""

from agent_mux.errors import AgentMuxError

try:
    import opentelemetry.trace as _  # noqa: F401  # is it there at all?
except ImportError as error:
    missing = "traces and metrics need OpenTelemetry: pip install 'agent-mux[otel]'"
    raise AgentMuxError("CAPABILITY_ERROR", missing) from error

from agent_mux.telemetry.otel.instrument import instrument, observe_events
from agent_mux.telemetry.otel.observer import RunObserver

__all__ = ["RunObserver", "instrument", "observe_events"]
