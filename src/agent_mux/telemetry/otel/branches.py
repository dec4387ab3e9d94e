"""Open spans of one run: what is begun is ended, at the time of the event that ends it."""

import json
from typing import Any

from opentelemetry.context import Context
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, Tracer, set_span_in_context

from agent_mux.telemetry.otel import conventions as names
from agent_mux.telemetry.otel.meters import Attributes, Meters

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
