"""Recording of spans and metrics: the open spans of one run, and the instruments that measure all runs."""

import json
from collections.abc import Mapping
from typing import Any

from opentelemetry.context import Context
from opentelemetry.metrics import MeterProvider, get_meter
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, Tracer, set_span_in_context

from agent_mux._util.version import __version__
from agent_mux.telemetry.otel import conventions as names

Attributes = Mapping[str, str | int | float]
NANOSECONDS = 1_000_000
"""Nanoseconds per millisecond."""


class Instruments:
    """The metric instruments of one meter provider."""

    def __init__(self, provider: MeterProvider | None) -> None:
        meter = get_meter("agent_mux", __version__, provider)
        self._tokens = meter.create_histogram(
            "gen_ai.client.token.usage",
            "{token}",
            "Number of input and output tokens used.",
            explicit_bucket_boundaries_advisory=names.TOKEN_BUCKETS,
        )
        self._operations = meter.create_histogram(
            "gen_ai.client.operation.duration",
            "s",
            "GenAI operation duration.",
            explicit_bucket_boundaries_advisory=names.OPERATION_BUCKETS,
        )
        self._agents = meter.create_histogram(
            "gen_ai.invoke_agent.duration",
            "s",
            "Duration of an agent invocation.",
            explicit_bucket_boundaries_advisory=names.AGENT_BUCKETS,
        )
        self._tools = meter.create_histogram(
            "gen_ai.execute_tool.duration",
            "s",
            "Duration of a single tool execution.",
            explicit_bucket_boundaries_advisory=names.OPERATION_BUCKETS,
        )
        self._runs = meter.create_counter("agent_mux.runs", "{run}", "Number of ended runs, by exit reason.")
        self._cost = meter.create_counter("agent_mux.cost", "USD", "Cost of ended runs, as far as it is known.")

    def record_tokens(self, kind: str, number: int, attributes: Attributes) -> None:
        """Record the tokens of one model call. `kind` is `input` or `output`."""
        self._tokens.record(number, {**attributes, names.TOKEN_TYPE: kind})

    def record_duration(self, operation: str, seconds: float, attributes: Attributes) -> None:
        """Record the duration of a model call, an agent, or a tool call."""
        by_operation = {names.INVOKE_AGENT: self._agents, names.EXECUTE_TOOL: self._tools}
        by_operation.get(operation, self._operations).record(seconds, attributes)

    def count_run(self, cost_usd: float | None, attributes: Attributes) -> None:
        """Count a run that has ended, and its cost in US dollars; None: unknown."""
        self._runs.add(1, attributes)
        if cost_usd is not None:
            self._cost.add(cost_usd, attributes)


class OpenSpan:
    """A span that has not ended, with what is needed to end it. Times are milliseconds since the epoch."""

    def __init__(self, span: Span, operation: str, start: int, metric_attributes: Attributes) -> None:
        self.span = span
        self.operation = operation
        self.start = start
        self.last_activity = start
        """The time of the last event inside of the span."""
        self.metric_attributes = metric_attributes
        """The attributes of the duration that is measured when the span ends."""
        self.texts: list[str] = []
        """The messages of the model inside of the span; empty unless content is captured."""


class SpanRecorder:
    """Starts and ends the spans of one run, and measures their durations."""

    def __init__(self, tracer: Tracer, instruments: Instruments) -> None:
        self._tracer = tracer
        self.instruments = instruments
        self.open: list[OpenSpan] = []
        """The spans that have not ended, in the order of their starts."""

    def start(
        self,
        name: str,
        at: int,
        parent: OpenSpan | Context | None,
        attributes: Attributes,
        metric_attributes: Attributes,
    ) -> OpenSpan:
        """Start a span.

        Runs and model calls have the kind "client", because another process carries them out.

        Args:
            name: The name of the span.
            at: The start time, in milliseconds since the epoch.
            parent: The parent span; for the run itself, the context in which it was started.
            attributes: The attributes of the span.
            metric_attributes: The attributes of its measured duration.
        """
        context = set_span_in_context(parent.span) if isinstance(parent, OpenSpan) else parent
        operation = str(attributes.get(names.OPERATION, ""))
        kind = SpanKind.INTERNAL if isinstance(parent, OpenSpan) and operation != names.CHAT else SpanKind.CLIENT
        span = self._tracer.start_span(name, context, kind, attributes, start_time=at * NANOSECONDS)
        opened = OpenSpan(span, operation, at, metric_attributes)
        self.open.append(opened)
        return opened

    def end(self, opened: OpenSpan, at: int, error: str | None = None, message: str | None = None) -> None:
        """End a span and record its duration. Do nothing if it has already ended.

        Args:
            opened: The span.
            at: The end time, in milliseconds since the epoch.
            error: The error type, if the operation failed.
            message: The error message; it may contain content.
        """
        if opened not in self.open:
            return
        self.open.remove(opened)
        at = max(at, opened.start)
        metric_attributes = dict(opened.metric_attributes)
        if error is not None:
            opened.span.set_attribute(names.ERROR, error)
            opened.span.set_status(Status(StatusCode.ERROR, message or error))
            metric_attributes[names.ERROR] = error
        opened.span.end(at * NANOSECONDS)
        if opened.operation:
            self.instruments.record_duration(opened.operation, (at - opened.start) / 1000, metric_attributes)


def format_content(value: Any) -> str:
    """Format captured content as the value of a span attribute: text unchanged, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def format_messages(role: str, texts: list[str]) -> str:
    """Format messages as the JSON that the semantic conventions define."""
    parts = [{"type": "text", "content": text} for text in texts]
    finished = {"finish_reason": "stop"} if role == "assistant" else {}
    return format_content([{"role": role, "parts": parts, **finished}])
