"""Traces to OpenTelemetry, where it is installed (extra `otel`). Source: hooks seed, section 7.2."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

from agent_loop.errors import ConfigurationError

if TYPE_CHECKING:
    from opentelemetry.trace import Span, Tracer

PREFIX = "agent_loop."
"""Of all attributes."""


class OpenTelemetryRecorder:
    """A `TraceRecorder`. Spans are current while they last: those of tools and sub-agents become their children."""

    def __init__(self, tracer: "Tracer | None" = None) -> None:
        """Raises `ConfigurationError` where OpenTelemetry is not installed."""
        try:
            from opentelemetry import trace  # noqa: PLC0415  # an extra
        except ImportError as error:
            raise ConfigurationError("OpenTelemetry is not installed; try: pip install 'agent-mux[otel]'") from error
        self._tracer = tracer or trace.get_tracer("agent_loop")

    def start_span(self, name: str) -> "OpenTelemetrySpan":
        """A span within the current one."""
        return OpenTelemetrySpan(self._tracer.start_span(name))

    def record_event(self, name: str, metadata: Mapping[str, Any]) -> None:
        """An event of the current span."""
        from opentelemetry import trace  # noqa: PLC0415  # an extra

        trace.get_current_span().add_event(name, {PREFIX + key: value for key, value in metadata.items()})


class OpenTelemetrySpan:
    """A `SpanHandle`. It is ended in the task that began it."""

    def __init__(self, span: "Span") -> None:
        from opentelemetry import context, trace  # noqa: PLC0415  # an extra

        self._span = span
        self._token = context.attach(trace.set_span_in_context(span))

    def set(self, key: str, value: Any) -> Self:
        """An attribute; "error" makes the span a failed one."""
        from opentelemetry.trace import StatusCode  # noqa: PLC0415  # an extra

        self._span.set_attribute(PREFIX + key, value)
        if key == "error":
            self._span.set_status(StatusCode.ERROR, str(value))
        return self

    def end(self) -> None:
        """The span before is current again."""
        from opentelemetry import context  # noqa: PLC0415  # an extra

        context.detach(self._token)
        self._span.end()
