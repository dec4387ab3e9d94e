"""An in-memory OpenTelemetry SDK whose spans and metrics can be compared with expectations."""

from collections.abc import Mapping
from typing import Any

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import Span


class Recorder:
    """Records the spans and metrics that a test emits."""

    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()
        self.tracers = TracerProvider()
        self.tracers.add_span_processor(SimpleSpanProcessor(self._exporter))
        self.tracers.add_span_processor(self._counter())
        self._reader = InMemoryMetricReader()
        self.meters = MeterProvider([self._reader])
        self.begun = 0

    def _counter(self) -> SimpleSpanProcessor:
        recorder = self

        class Counter(SimpleSpanProcessor):
            def on_start(self, span: Span, parent_context: Any = None) -> None:
                recorder.begun += 1

            def on_end(self, span: ReadableSpan) -> None:
                pass

        return Counter(self._exporter)

    @property
    def providers(self) -> dict[str, Any]:
        return {"tracer_provider": self.tracers, "meter_provider": self.meters}

    @property
    def spans(self) -> tuple[ReadableSpan, ...]:
        """The ended spans. Asserts that every started span has ended."""
        finished = self._exporter.get_finished_spans()
        assert len(finished) == self.begun
        return finished

    def span(self, name: str) -> ReadableSpan:
        (found,) = [span for span in self.spans if span.name == name]
        return found

    def tree(self) -> list[str]:
        """Return one line per span: indented name, start and end in milliseconds since the first start, and error."""
        first = min(span.start_time or 0 for span in self.spans)

        def lines(parent: int | None, depth: int) -> list[str]:
            children = [span for span in self.spans if (span.parent.span_id if span.parent else None) == parent]
            found: list[str] = []
            for span in sorted(children, key=lambda span: (span.start_time or 0, span.end_time or 0)):
                begin, end = ((at or 0) - first for at in (span.start_time, span.end_time))
                failed = "" if span.status.is_unset else f" {attributes(span)['error.type']}"
                found.append(f"{'  ' * depth}{span.name} [{begin // 10**6}-{end // 10**6}]{failed}")
                found += lines(span.context.span_id, depth + 1)
            return found

        return lines(None, 0)

    def measured(self) -> dict[str, dict[tuple[Any, ...], float]]:
        """Return the sums, by metric and by the values of its attributes."""
        data = self._reader.get_metrics_data()
        metrics = [m for r in data.resource_metrics for s in r.scope_metrics for m in s.metrics] if data else []
        return {
            metric.name: {
                tuple(point.attributes.values()): round(getattr(point, "sum", None) or getattr(point, "value", 0), 6)
                for point in metric.data.data_points
            }
            for metric in metrics
        }

    def everything(self) -> str:
        """Return all spans and metrics as text."""
        return str([span.to_json() for span in self.spans]) + str(self.measured())


def attributes(span: ReadableSpan) -> Mapping[str, Any]:
    return dict(span.attributes or {})
