"""Where traces go: a recorder of anybody, given or found in the context. Source: hooks seed, section 7.2."""
# DOC: """Traces: how long model calls and tools take, and what came of them. Source: hooks seed, section 6.6."""
# DOC: """Traces to OpenTelemetry, where it is installed (extra `otel`). Source: hooks seed, section 7.2."""

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


class SpanHandle(Protocol):
    """Something that takes time."""

    def set(self, key: str, value: Any) -> "SpanHandle":
        """Note a fact about it: text, a number or a truth value. Can be chained."""
        ...

    def end(self) -> None:
        """It is over."""
        ...


class TraceRecorder(Protocol):
    """Keeps spans and events."""

    def start_span(self, name: str) -> SpanHandle:
        """Something begins."""
        ...

    def record_event(self, name: str, metadata: Mapping[str, Any]) -> None:
        """Something happened."""
        ...


_RECORDER: ContextVar[TraceRecorder | None] = ContextVar("agent_loop_trace_recorder", default=None)


def current_recorder() -> TraceRecorder | None:
    """The recorder of this context, where there is one."""
    return _RECORDER.get()


@contextmanager
def recording_to(recorder: TraceRecorder | None) -> Iterator[None]:
    """All that is done in this block, and in tasks begun in it, is recorded there."""
    token = _RECORDER.set(recorder)
    try:
        yield
    finally:
        _RECORDER.reset(token)


@contextmanager
def log_failures(what: str) -> Iterator[None]:
    """What a recorder raises in this block is logged, and no trouble of the run."""
    try:
        yield
    except Exception:  # noqa: BLE001  # a recorder of anybody
        _log.warning("the trace recorder failed to %s; the run goes on without it", what, exc_info=True)


class SafeSpan:
    """A span that never gets in the way."""

    def __init__(self, recorder: TraceRecorder, name: str) -> None:
        self._span: SpanHandle | None = None
        with log_failures(f"start the span {name}"):
            self._span = recorder.start_span(name)

    def set(self, key: str, value: Any) -> "SafeSpan":
        """As the recorder does."""
        if self._span is not None:
            with log_failures(f"take {key}"):
                self._span.set(key, value)
        return self

    def end(self) -> None:
        """As the recorder does."""
        if self._span is not None:
            with log_failures("end a span"):
                self._span.end()


PREVIEW_CHARACTERS = 500
"""Characters that are recorded of texts."""
MODEL_SPAN = "llm.call"
TOOL_SPAN = "tool.call"
RUN_EVENT = "loop.end"


class TracingMiddleware:
    """Spans around model calls and tools. Without a recorder, here or in the context, it does nothing.

    Register it first: it times all that is inwards of it. With `previews=False` no word of anybody is recorded.
    """

    name = "tracing"

    def __init__(self, recorder: TraceRecorder | None = None, *, previews: bool = True) -> None:
        self._recorder = recorder
        self._previews = previews

    @property
    def recorder(self) -> TraceRecorder | None:
        """Where traces go now."""
        return self._recorder if self._recorder is not None else current_recorder()

    def install(self, hooks: Hooks) -> None:
        """Register what it consists of."""
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
    """A span that ends in any case, and knows of what was raised; being cancelled is no error."""
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
