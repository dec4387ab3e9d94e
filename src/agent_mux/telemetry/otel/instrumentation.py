"""Instrumentation of clients, runs, and recorded streams of events."""

import os
import time
from collections.abc import Callable, Iterable

from opentelemetry.context import get_current
from opentelemetry.metrics import MeterProvider
from opentelemetry.trace import Tracer, TracerProvider, get_tracer, set_span_in_context

from agent_mux._util.version import __version__
from agent_mux.client import AgentMux
from agent_mux.client.blocking import BlockingAgentMux
from agent_mux.events import AgentEvent
from agent_mux.run.environment import trace_environment
from agent_mux.run.handle import RunHandle
from agent_mux.sdk.models import ModelCapabilities
from agent_mux.telemetry.otel.conventions import CAPTURE_CONTENT, PROVIDERS, YES
from agent_mux.telemetry.otel.observer import ModelDetails, RunObserver
from agent_mux.telemetry.otel.spans import Instruments, SpanRecorder


def instrument(
    target: AgentMux | BlockingAgentMux | RunHandle,
    tracer_provider: TracerProvider | None = None,
    meter_provider: MeterProvider | None = None,
    *,
    capture_content: bool | None = None,
) -> Callable[[], None]:
    """Emit spans and metrics for every run that a client starts from now on, or for one run.

    The span of a run is a child of the span that is active when the run starts. The agent receives it as `TRACEPARENT`,
    so that spans of the agent itself are its children.

    Args:
        target: A client; or a run that has just been started, before anything is awaited.
        tracer_provider: Replaces the global tracer provider.
        meter_provider: Replaces the global meter provider.
        capture_content: Whether to record prompts, messages, and the input and output of tools. Default: the value of
            `OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT`, else no.

    Returns:
        The function that ends the instrumentation. For a client, runs that have started are observed to their end.
    """
    tracer, instruments = _tracer_and_instruments(tracer_provider, meter_provider)
    captures = _captures_content(capture_content)

    def observe(run: RunHandle) -> Callable[[], None]:
        return _observe(run, tracer, instruments, captures=captures)

    if isinstance(target, RunHandle):
        return observe(target)
    return target.on_run(observe)


def observe_events(
    events: Iterable[AgentEvent],
    tracer_provider: TracerProvider | None = None,
    meter_provider: MeterProvider | None = None,
    *,
    capture_content: bool | None = None,
    model: str | None = None,
) -> None:
    """Emit the spans and metrics of a run that has ended, from its events and with their times.

    Args:
        events: All events of one run, from a journal or a file.
        tracer_provider: Replaces the global tracer provider.
        meter_provider: Replaces the global meter provider.
        capture_content: Whether to record content; see `instrument`.
        model: The name of the model, which events do not contain.
    """
    spans = SpanRecorder(*_tracer_and_instruments(tracer_provider, meter_provider))
    captures = _captures_content(capture_content)
    details = ModelDetails(response_model=lambda: model)
    observer = RunObserver(spans, details, capture_content=captures, parent=get_current())
    try:
        for event in events:
            observer.observe(event)
    finally:
        observer.close()


def _observe(run: RunHandle, tracer: Tracer, instruments: Instruments, *, captures: bool) -> Callable[[], None]:
    details = ModelDetails(
        provider=_provider(run), request_model=run.header.stream.model, response_model=lambda: run.model
    )
    observer = RunObserver(SpanRecorder(tracer, instruments), details, capture_content=captures, parent=get_current())
    root = observer.begin(run.run_id, run.agent, time.time_ns() // 1_000_000)
    observer.set_prompt(str(run.header.options.get("prompt", "")))
    run.add_environment(trace_environment(set_span_in_context(root.span)))
    run.observe(observer.observe)
    return observer.close


def _provider(run: RunHandle) -> str | None:
    """Return the provider of the requested model, or the only provider of the agent's models; None if ambiguous."""
    models: tuple[ModelCapabilities, ...] = run.adapter.models()
    requested = run.header.stream.model
    known = [model.provider for model in models if requested in {model.model_id, *model.alias}]
    providers = known or sorted({model.provider for model in models})
    if len(set(providers)) != 1:
        return None
    return PROVIDERS.get(providers[0], providers[0])


def _tracer_and_instruments(
    tracer_provider: TracerProvider | None, meter_provider: MeterProvider | None
) -> tuple[Tracer, Instruments]:
    return get_tracer("agent_mux", __version__, tracer_provider), Instruments(meter_provider)


def _captures_content(requested: bool | None) -> bool:
    return os.environ.get(CAPTURE_CONTENT, "").lower() in YES if requested is None else requested
