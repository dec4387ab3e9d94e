"""Telling an agent which trace it belongs to."""

import sys
from typing import Any


def trace_environment(context: Any = None) -> dict[str, str]:
    """The variables that say which span is active: now, or in this OpenTelemetry context.

    Empty where there is none, or no OpenTelemetry is in use.
    """
    if "opentelemetry.trace" not in sys.modules:
        return {}
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator  # noqa: PLC0415  # an extra

    carrier: dict[str, Any] = {}
    TraceContextTextMapPropagator().inject(carrier, context)
    return {name.upper(): str(value) for name, value in carrier.items()}
