"""The metrics of runs.

Open spans of one run: what is begun is ended, at the time of the event that ends it.


What the terminal event of a run says about how it ended.
"""

import json
from collections.abc import Mapping
from typing import Any

from opentelemetry.context import Context
from opentelemetry.metrics import MeterProvider, get_meter
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, Tracer, set_span_in_context

from agent_mux import events as ev
from agent_mux._util.version import __version__
from agent_mux.events import AgentEvent
from agent_mux.telemetry.otel import conventions as names

Attributes = Mapping[str, str | int | float]


class Meters:
    """Instruments, made once for each meter provider that is used."""

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
            "From the start of an agent to its last word.",
            explicit_bucket_boundaries_advisory=names.AGENT_BUCKETS,
        )
        self._tools = meter.create_histogram(
            "gen_ai.execute_tool.duration",
            "s",
            "The duration of a single tool execution.",
            explicit_bucket_boundaries_advisory=names.OPERATION_BUCKETS,
        )
        self._runs = meter.create_counter("agent_mux.runs", "{run}", "Runs that ended, by exit reason.")
        self._cost = meter.create_counter("agent_mux.cost", "USD", "What runs cost, where that is known.")

    def tokens(self, kind: str, number: int, attributes: Attributes) -> None:
        """Tokens of one kind, of one model call."""
        self._tokens.record(number, {**attributes, names.TOKEN_TYPE: kind})

    def duration(self, operation: str, seconds: float, attributes: Attributes) -> None:
        """How long a model call, an agent or a tool took."""
        by_operation = {names.INVOKE_AGENT: self._agents, names.EXECUTE_TOOL: self._tools}
        by_operation.get(operation, self._operations).record(seconds, attributes)

    def run(self, cost_usd: float | None, attributes: Attributes) -> None:
        """A run ended."""
        self._runs.add(1, attributes)
        if cost_usd is not None:
            self._cost.add(cost_usd, attributes)


NANOSECONDS = 1_000_000
"""In a millisecond."""


class Branch:
    """One span, and the ways it can end. Times are milliseconds since the epoch."""

    def __init__(self, span: Span, operation: str, start: int, measured: Attributes) -> None:
        self.span = span
        self.operation = operation
        self.start = start
        self.last = start
        """Of what happened in it."""
        self.measured = measured
        """The attributes that go with its duration."""
        self.texts: list[str] = []
        """What the model said, where that is wanted."""


class Spans:
    """Begins and ends spans."""

    def __init__(self, tracer: Tracer, meters: Meters) -> None:
        self._tracer = tracer
        self.meters = meters
        self.open: list[Branch] = []

    def begin(
        self, name: str, at: int, parent: Branch | Context | None, attributes: Attributes, measured: Attributes
    ) -> Branch:
        """A span below another, or, for the run itself, below what was active when it was started.

        Runs and model calls are of the kind "client": something outside of this process does them.
        """
        context = set_span_in_context(parent.span) if isinstance(parent, Branch) else parent
        operation = str(attributes.get(names.OPERATION, ""))
        kind = SpanKind.INTERNAL if isinstance(parent, Branch) and operation != names.CHAT else SpanKind.CLIENT
        span = self._tracer.start_span(name, context, kind, attributes, start_time=at * NANOSECONDS)
        branch = Branch(span, operation, at, measured)
        self.open.append(branch)
        return branch

    def end(self, branch: Branch, at: int, error: str | None = None, message: str | None = None) -> None:
        """It is over; the second time nothing happens. `error` is a code, `message` may say what others said."""
        if branch not in self.open:
            return
        self.open.remove(branch)
        at = max(at, branch.start)
        measured = dict(branch.measured)
        if error is not None:
            branch.span.set_attribute(names.ERROR, error)
            branch.span.set_status(Status(StatusCode.ERROR, message or error))
            measured[names.ERROR] = error
        branch.span.end(at * NANOSECONDS)
        if branch.operation:
            self.meters.duration(branch.operation, (at - branch.start) / 1000, measured)


def as_json(value: Any) -> str:
    """Content, as an attribute of a span."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def messages(role: str, texts: list[str]) -> str:
    """Texts in the form that the conventions give to messages."""
    parts = [{"type": "text", "content": text} for text in texts]
    finished = {"finish_reason": "stop"} if role == "assistant" else {}
    return as_json([{"role": role, "parts": parts, **finished}])


Ending = tuple[str, str | None, str | None]
"""Exit reason (as in `RunResult`), `error.type`, and what was said."""

_SIGNALS_SENT = frozenset({-2, -9, -15, 129, 130, 137, 143})
"""What somebody sends on purpose. -1 is also that nothing was started, and then more likely that."""


_SILENT: Mapping[type, Ending] = {
    ev.AbortedEvent: ("aborted", "ABORTED", None),
    ev.InterruptedEvent: ("interrupted", "ABORTED", None),
    ev.TurnLimitEvent: ("turn_limit", "ABORTED", None),
    ev.ContextExceededEvent: ("failed", "CONTEXT_EXCEEDED", None),
}
_OF_CODE: Mapping[str, str] = {"BUDGET_EXCEEDED": "budget", "AGENT_CRASH": "truncated"}


def ending_of(event: AgentEvent) -> Ending | None:
    """None for an event that ends nothing."""
    match event:
        case ev.TimeoutEvent(kind=kind):
            return ("timeout", "TIMEOUT", None) if kind == "run" else ("inactivity", "INACTIVITY_TIMEOUT", None)
        case ev.CrashEvent(exit_code=code, stderr=stderr):
            return "killed" if code in _SIGNALS_SENT else "crashed", "AGENT_CRASH", stderr or None
        case ev.AuthErrorEvent(message=message):
            return "failed", "AUTH_ERROR", message
        case ev.RateLimitErrorEvent(message=message):
            return "failed", "RATE_LIMITED", message
        case ev.ErrorEvent(code=code, message=message, recoverable=False):
            return _OF_CODE.get(code, "failed"), code, message
    return _SILENT.get(type(event))
