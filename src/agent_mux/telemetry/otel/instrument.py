"""Observing clients, runs, and streams of events."""

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
from agent_mux.telemetry.otel.observer import About, RunObserver
from agent_mux.telemetry.otel.spans import Meters, Spans


def instrument(
    target: AgentMux | BlockingAgentMux | RunHandle,
    tracer_provider: TracerProvider | None = None,
    meter_provider: MeterProvider | None = None,
    *,
    capture_content: bool | None = None,
) -> Callable[[], None]:
    """Make spans and measurements of every run that a client starts from now on, or of this one.

    A run is told right after it was started, before anything is awaited. The span of a run is below the one that is
    active when the run is started, and above what the agent itself reports: it is told in `TRACEPARENT`.

    Args:
        target: A client, or one run.
        tracer_provider: Instead of the global one.
        meter_provider: Instead of the global one.
        capture_content: Prompts, answers, and what goes into tools and comes out, too. None: as the variable
            `OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT` says, which is no, by default.

    Returns:
        The function that stops it. Runs that are observed already are observed to their end.
    """
    tracer, meters = _tools(tracer_provider, meter_provider)
    captures = _captures(capture_content)

    def observe(run: RunHandle) -> Callable[[], None]:
        return _observe(run, tracer, meters, captures=captures)

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
    """Make the spans and measurements of a run that is over, out of its events: they have their times.

    Args:
        events: All of one run, from a journal or a file.
        tracer_provider: Instead of the global one.
        meter_provider: Instead of the global one.
        capture_content: As for `instrument`.
        model: The model that answered: events do not say it.
    """
    spans = Spans(*_tools(tracer_provider, meter_provider))
    captures = _captures(capture_content)
    observer = RunObserver(spans, About(model=lambda: model), capture_content=captures, parent=get_current())
    try:
        for event in events:
            observer.see(event)
    finally:
        observer.close()


def _observe(run: RunHandle, tracer: Tracer, meters: Meters, *, captures: bool) -> Callable[[], None]:
    about = About(provider=_provider(run), request_model=run.header.stream.model, model=lambda: run.model)
    observer = RunObserver(Spans(tracer, meters), about, capture_content=captures, parent=get_current())
    root = observer.begin(run.run_id, run.agent, time.time_ns() // 1_000_000)
    observer.prompted(str(run.header.options.get("prompt", "")))
    run.add_environment(trace_environment(set_span_in_context(root.span)))
    run.on("*", observer.see)
    return observer.close


def _provider(run: RunHandle) -> str | None:
    """Who serves the model, or the first model that the agent has."""
    models: tuple[ModelCapabilities, ...] = run.adapter.models()
    asked = run.header.stream.model
    known = [model.provider for model in models if asked in {model.model_id, *model.alias}]
    providers = known or sorted({model.provider for model in models})
    if len(set(providers)) != 1:
        return None
    return PROVIDERS.get(providers[0], providers[0])


def _tools(tracer_provider: TracerProvider | None, meter_provider: MeterProvider | None) -> tuple[Tracer, Meters]:
    return get_tracer("agent_mux", __version__, tracer_provider), Meters(meter_provider)


def _captures(wanted: bool | None) -> bool:
    return os.environ.get(CAPTURE_CONTENT, "").lower() in YES if wanted is None else wanted
