"""Prometheus metrics of the service. Each application has its own registry.

Recording costs nothing per event: the counts of live runs are read from them at collection time. Label values are
bounded: registered agent names, route templates, known methods and statuses.

`MetricsMiddleware` encloses the guard, so that refused requests are counted, too.
"""

import time
from collections import Counter as Tally
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Info, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agent_mux._util.version import __version__
from agent_mux.run.base import TERMINAL_STATES
from agent_mux.sdk.interactions import PendingInteraction
from agent_mux.service.runs.live import LiveRun, OutboxEntry
from agent_mux.service.store.runs import RunRow
from agent_mux.service.views import RunView

REQUEST_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
RUN_SECONDS = (1.0, 5.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0, 7200.0, 21600.0)
WAIT_SECONDS = (0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0, 14400.0)

Stream = Literal["sse", "jsonl", "websocket"]
AttemptOutcome = Literal["delivered", "retry", "given_up", "refused", "gone"]
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
STREAMS: Mapping[str, Stream] = {"text/event-stream": "sse", "application/jsonl": "jsonl"}
"""Content types of streams. Their duration is excluded from the request durations: it depends on the run."""
NO_ROUTE = "(none)"


@dataclass(frozen=True, slots=True)
class LiveState:
    """What the collector reads at collection time."""

    alive: Callable[[], Iterable[LiveRun]]
    """Return the runs that have not ended."""
    waiting: Callable[[], int]
    """Return how many runs wait in the queue."""
    comparisons: Callable[[], int]
    """Return how many comparisons are active."""


class Metrics:
    """All metrics of one application. Also an observer of runs."""

    def __init__(self) -> None:
        registry = self.registry = CollectorRegistry()
        self.life: LiveState | None = None
        """Set while the service is open."""
        self.events: Tally[tuple[str, str]] = Tally()
        """Events of ended runs, by agent and type."""
        self._runs_ended = Counter(
            "agent_mux_runs_ended", "Runs that have ended.", ("agent", "exit_reason"), registry=registry
        )
        self._run_seconds = Histogram(
            "agent_mux_run_duration_seconds",
            "Time from the start of a run's agent to its end.",
            ("agent",),
            buckets=RUN_SECONDS,
            registry=registry,
        )
        self._wait_seconds = Histogram(
            "agent_mux_queue_wait_seconds",
            "Time from the request for a run to the start of its agent.",
            ("agent",),
            buckets=WAIT_SECONDS,
            registry=registry,
        )
        self._comparisons_ended = Counter(
            "agent_mux_comparisons_ended", "Comparisons that are over.", ("status",), registry=registry
        )
        self._trials_ended = Counter(
            "agent_mux_trials_ended", "Trials of comparisons with an outcome.", ("agent", "verdict"), registry=registry
        )
        self.requests = Counter(
            "agent_mux_http_requests", "Answered requests.", ("route", "method", "status"), registry=registry
        )
        self.request_seconds = Histogram(
            "agent_mux_http_request_duration_seconds",
            "Time to the end of the response, streams excluded.",
            ("route", "method"),
            buckets=REQUEST_SECONDS,
            registry=registry,
        )
        self.streams = Counter("agent_mux_streams", "Opened streams.", ("kind",), registry=registry)
        self.readers = Gauge("agent_mux_readers", "Currently open streams.", ("kind",), registry=registry)
        self.webhook_attempts = Counter(
            "agent_mux_webhook_attempts", "Delivery attempts to webhooks.", ("outcome",), registry=registry
        )
        Info("agent_mux_build", "Version of the running service.", registry=registry).info({"version": __version__})
        ProcessCollector(registry=registry)
        registry.register(_LiveCollector(self))

    def started(self, row: RunRow, view: RunView) -> Iterable[OutboxEntry]:  # noqa: ARG002  # the observer protocol
        """Record how long the run waited for its start."""
        self._wait_seconds.labels(row.agent).observe(max(0, (row.started_at or 0) - row.created_at) / 1000)
        return ()

    def interaction_requested(self, row: RunRow, view: RunView, pending: PendingInteraction) -> Iterable[OutboxEntry]:  # noqa: ARG002
        """Count nothing: interactions have no metric."""
        return ()

    def ended(self, row: RunRow, view: RunView, events: Mapping[str, int]) -> Iterable[OutboxEntry]:  # noqa: ARG002
        """Record the exit reason, the duration and the events of a run."""
        self._runs_ended.labels(row.agent, row.exit_reason or "").inc()
        if row.started_at is not None:
            self._run_seconds.labels(row.agent).observe((row.duration_ms or 0) / 1000)
        for type_, count in events.items():
            self.events[row.agent, type_] += count
        return ()

    def trial_ended(self, agent: str, verdict: str) -> None:
        """Count the outcome of a trial. `agent`: `null` and `oracle` for the built-in candidates."""
        self._trials_ended.labels(agent, verdict).inc()

    def comparison_ended(self, status: str) -> None:
        """Count a comparison that is over: `ended`, `interrupted` (trials are left) or `failed`."""
        self._comparisons_ended.labels(status).inc()


class _LiveCollector(Collector):
    """The metrics that are computed at collection time."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def collect(self) -> Iterable[Metric]:
        life = self._metrics.life
        alive = [] if life is None else list(life.alive())
        yield _states(alive)
        yield GaugeMetricFamily(
            "agent_mux_queue_length", "Runs waiting to start.", value=0 if life is None else life.waiting()
        )
        active = 0 if life is None else life.comparisons()
        yield GaugeMetricFamily("agent_mux_comparisons", "Active comparisons.", value=active)
        yield _events(self._metrics.events, alive)


def _states(alive: Iterable[LiveRun]) -> Metric:
    family = GaugeMetricFamily("agent_mux_runs", "Runs that have not ended.", labels=("agent", "state"))
    states = Tally((run.row.agent, run.handle.state) for run in alive if run.handle.state not in TERMINAL_STATES)
    for labels, count in sorted(states.items()):
        family.add_metric(labels, count)
    return family


def _events(before: Mapping[tuple[str, str], int], alive: Iterable[LiveRun]) -> Metric:
    family = CounterMetricFamily("agent_mux_events", "Events emitted by runs.", labels=("agent", "type"))
    events = Tally(before)
    for run in alive:
        for type_, count in run.event_counts.items():
            events[run.row.agent, type_] += count
    for labels, count in sorted(events.items()):
        family.add_metric(labels, count)
    return family


class MetricsMiddleware:
    """ASGI middleware that counts requests and streams."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on and record its outcome."""
        if scope["type"] == "http":
            await self._request(scope, receive, send)
        elif scope["type"] == "websocket":
            await self._websocket(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    async def _request(self, scope: Scope, receive: Receive, send: Send) -> None:
        began = time.monotonic()
        outcome = _RequestOutcome(self._metrics)

        async def send_observed(message: Message) -> None:
            if message["type"] == "http.response.start":
                outcome.begins(message)
            await send(message)

        try:
            await self._app(scope, receive, send_observed)
        finally:
            outcome.ends()
            route = getattr(scope.get("route"), "path", NO_ROUTE)
            method = scope["method"] if scope["method"] in METHODS else "other"
            self._metrics.requests.labels(route, method, outcome.status).inc()
            if outcome.stream is None:
                self._metrics.request_seconds.labels(route, method).observe(time.monotonic() - began)

    async def _websocket(self, scope: Scope, receive: Receive, send: Send) -> None:
        outcome = _RequestOutcome(self._metrics)

        async def send_observed(message: Message) -> None:
            if message["type"] == "websocket.accept":
                outcome.opens("websocket")
            await send(message)

        try:
            await self._app(scope, receive, send_observed)
        finally:
            outcome.ends()


class _RequestOutcome:
    """Status and stream kind of one request, filled while it is answered."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self.status = 500
        """500 until a response starts: without one, an outer layer answers 500."""
        self.stream: Stream | None = None

    def begins(self, message: Message) -> None:
        self.status = message["status"]
        for name, value in message.get("headers", ()):
            if name == b"content-type":
                stream = STREAMS.get(value.decode("latin-1").partition(";")[0])
                if stream is not None:
                    self.opens(stream)

    def opens(self, stream: Stream) -> None:
        self.stream = stream
        self._metrics.streams.labels(stream).inc()
        self._metrics.readers.labels(stream).inc()

    def ends(self) -> None:
        if self.stream is not None:
            self._metrics.readers.labels(self.stream).dec()
