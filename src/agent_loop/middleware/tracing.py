"""Traces of model and tool calls: recorder interfaces, middleware, and a recorder for OpenTelemetry."""

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Protocol, Self

import msgspec

from agent_loop.errors import ConfigurationError
from agent_loop.hooks.contexts import LoopEnded
from agent_loop.hooks.registry import Hooks, ModelCall, ToolRun
from agent_loop.messages import ToolCall
from agent_loop.providers import ModelRequest, ModelResponse
from agent_loop.tools.tool import ToolResult

if TYPE_CHECKING:
    from opentelemetry.trace import Span, Tracer

_log = logging.getLogger("agent_loop.tracing")

PREVIEW_CHARACTERS = 500
"""Characters that are recorded of texts."""
MODEL_SPAN = "llm.call"
TOOL_SPAN = "tool.call"
RUN_EVENT = "loop.end"
ATTRIBUTE_PREFIX = "agent_loop."
"""Prefix of all attribute names."""


class SpanHandle(Protocol):
    """An open span of a recorder."""

    def set(self, key: str, value: Any) -> "SpanHandle":
        """Set an attribute (text, number or boolean) and return the span."""
        ...

    def end(self) -> None:
        """End the span; it takes no further attributes."""
        ...


class TraceRecorder(Protocol):
    """Interface of a backend that records spans and events."""

    def start_span(self, name: str) -> SpanHandle:
        """Start a span with this name."""
        ...

    def record_event(self, name: str, metadata: Mapping[str, Any]) -> None:
        """Record an event with metadata."""
        ...


_RECORDER: ContextVar[TraceRecorder | None] = ContextVar("agent_loop_trace_recorder", default=None)


def current_recorder() -> TraceRecorder | None:
    """Return the recorder of the current context, or None."""
    return _RECORDER.get()


@contextmanager
def recording_to(recorder: TraceRecorder | None) -> Iterator[None]:
    """Set the recorder for the block and for tasks that are started in it."""
    token = _RECORDER.set(recorder)
    try:
        yield
    finally:
        _RECORDER.reset(token)


@contextmanager
def log_failures(action: str) -> Iterator[None]:
    """Log exceptions that a recorder raises in the block instead of raising them."""
    try:
        yield
    except Exception:  # noqa: BLE001  # foreign recorder code
        _log.warning("the trace recorder failed to %s; the run continues without it", action, exc_info=True)


class SafeSpan:
    """A span whose recorder cannot make the run fail."""

    def __init__(self, recorder: TraceRecorder, name: str) -> None:
        self._span: SpanHandle | None = None
        with log_failures(f"start the span {name}"):
            self._span = recorder.start_span(name)

    def set(self, key: str, value: Any) -> "SafeSpan":
        """Set an attribute; failures are logged."""
        if self._span is not None:
            with log_failures(f"take {key}"):
                self._span.set(key, value)
        return self

    def end(self) -> None:
        """End the span; failures are logged."""
        if self._span is not None:
            with log_failures("end a span"):
                self._span.end()


class TracingMiddleware:
    """Records spans of model and tool calls, if a recorder is given here or set in the context.

    Register it first, so that it measures everything inside. `previews=False` records no text of messages or tools.
    """

    name = "tracing"

    def __init__(self, recorder: TraceRecorder | None = None, *, previews: bool = True) -> None:
        self._recorder = recorder
        self._previews = previews

    @property
    def recorder(self) -> TraceRecorder | None:
        """The recorder in use, or None."""
        return self._recorder if self._recorder is not None else current_recorder()

    def install(self, hooks: Hooks) -> None:
        """Register the wrappers and the handler for the end of a run."""
        hooks.wrap_model_call(self._around_model_call)
        hooks.wrap_tool_call(self._around_tool_call)
        hooks.on("loop:after", self._record_run_end)

    async def _around_model_call(self, request: ModelRequest, call: ModelCall) -> ModelResponse:
        recorder = self.recorder
        if recorder is None:
            return await call(request)
        with _span(recorder, MODEL_SPAN, previews=self._previews) as span:
            span.set("purpose", request.purpose).set("message_count", len(request.messages))
            response = await call(request)
            self._note_response(span, response)
            return response

    async def _around_tool_call(self, call: ToolCall, run: ToolRun) -> ToolResult:
        recorder = self.recorder
        if recorder is None:
            return await run(call)
        with _span(recorder, TOOL_SPAN, previews=self._previews) as span:
            span.set("tool_name", call.name).set("tool_call_id", call.id)
            self._preview(span, "tool_args", msgspec.json.encode(call.arguments, enc_hook=str).decode())
            result = await run(call)
            span.set("output_length", len(result.text))
            self._preview(span, "error" if result.is_error else "output_preview", result.text)
            span.set("is_error", result.is_error)
            return result

    def _note_response(self, span: SafeSpan, response: ModelResponse) -> None:
        names = [call.name for call in response.tool_calls]
        span.set("content_length", len(response.text)).set("tool_calls_count", len(names))
        span.set("tool_call_names", ", ".join(names)[:PREVIEW_CHARACTERS]).set("stop_reason", response.stop_reason)
        span.set("input_tokens", response.usage.prompt_tokens).set("output_tokens", response.usage.output_tokens)
        self._preview(span, "content_preview", response.text)

    def _preview(self, span: SafeSpan, key: str, text: str) -> None:
        if self._previews:
            span.set(key, text[:PREVIEW_CHARACTERS])

    def _record_run_end(self, context: LoopEnded) -> None:
        if (recorder := self.recorder) is not None:
            metadata = {"status": context.status, "turns": context.turns, "total_tokens": context.usage.total_tokens}
            with log_failures(f"take the event {RUN_EVENT}"):
                recorder.record_event(RUN_EVENT, metadata)


@contextmanager
def _span(recorder: TraceRecorder, name: str, *, previews: bool) -> Iterator[SafeSpan]:
    """Open a span that is ended in any case and records exceptions; cancellation is not recorded as an error."""
    span = SafeSpan(recorder, name)
    try:
        yield span
    except Exception as error:
        message = f"{type(error).__name__}: {error}" if previews else type(error).__name__
        span.set("error", message[:PREVIEW_CHARACTERS])
        raise
    except BaseException:
        span.set("cancelled", True)
        raise
    finally:
        span.end()


class OpenTelemetryRecorder:
    """A `TraceRecorder`. Its spans are current while open, so that inner spans become their children."""

    def __init__(self, tracer: "Tracer | None" = None) -> None:
        """Use this tracer, or the global one. Raises `ConfigurationError` without OpenTelemetry."""
        try:
            from opentelemetry import trace  # noqa: PLC0415  # an extra
        except ImportError as error:
            raise ConfigurationError("OpenTelemetry is not installed; try: pip install 'agent-mux[otel]'") from error
        self._tracer = tracer or trace.get_tracer("agent_loop")

    def start_span(self, name: str) -> "OpenTelemetrySpan":
        """Start a span within the current one."""
        return OpenTelemetrySpan(self._tracer.start_span(name))

    def record_event(self, name: str, metadata: Mapping[str, Any]) -> None:
        """Add an event to the current span."""
        from opentelemetry import trace  # noqa: PLC0415  # an extra

        trace.get_current_span().add_event(name, {ATTRIBUTE_PREFIX + key: value for key, value in metadata.items()})


class OpenTelemetrySpan:
    """A `SpanHandle`. It must be ended in the task that started it."""

    def __init__(self, span: "Span") -> None:
        from opentelemetry import context, trace  # noqa: PLC0415  # an extra

        self._span = span
        self._token = context.attach(trace.set_span_in_context(span))

    def set(self, key: str, value: Any) -> Self:
        """Set an attribute; "error" also sets the error status."""
        from opentelemetry.trace import StatusCode  # noqa: PLC0415  # an extra

        self._span.set_attribute(ATTRIBUTE_PREFIX + key, value)
        if key == "error":
            self._span.set_status(StatusCode.ERROR, str(value))
        return self

    def end(self) -> None:
        """End the span and restore the previous one as current."""
        from opentelemetry import context  # noqa: PLC0415  # an extra

        context.detach(self._token)
        self._span.end()
