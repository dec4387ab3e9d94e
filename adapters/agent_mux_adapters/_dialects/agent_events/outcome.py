"""Turns, costs and terminal events to facts. See docs/reference/agent-protocol.md, "Turns that fail"."""

from collections.abc import Callable, Mapping
from typing import Any

from agent_mux.events.base import CostEvent
from agent_mux.events.run import (
    AbortedEvent,
    AuthErrorEvent,
    ContextExceededEvent,
    CrashEvent,
    ErrorEvent,
    InterruptedEvent,
    RateLimitErrorEvent,
    TimeoutEvent,
    TurnLimitEvent,
)
from agent_mux.events.session import SessionEndEvent, StepEndEvent, StepStartEvent, TurnEndEvent, TurnStartEvent
from agent_mux.sdk import facts
from agent_mux_adapters._dialects.agent_events.content import Facts

_Handler = Callable[[Any, Mapping[str, Any]], Facts]


class AgentEventsOutcome:
    """Determines how each turn ended: well, unless a terminal event reports otherwise."""

    def __init__(self) -> None:
        self._open = False
        self._has_cost = False
        """Whether the cost was reported before, so that the one at the end repeats it."""
        self.handlers: Mapping[type, _Handler] = {
            TurnStartEvent: self._start,
            TurnEndEvent: self._end,
            StepStartEvent: lambda event, _: (facts.StepBegin(event.step_type),),
            StepEndEvent: lambda *_: (facts.StepDone(),),
            CostEvent: self._cost,
            SessionEndEvent: self._session_end,
            InterruptedEvent: lambda *_: self._closed(facts.TurnStopped()),
            AbortedEvent: lambda *_: self._closed(facts.TurnStopped()),
            TurnLimitEvent: lambda event, _: self._closed(facts.TurnLimitHit(event.max_turns)),
            TimeoutEvent: lambda event, _: self._failed(_timeout(event)),
            AuthErrorEvent: lambda event, _: self._failed(_auth(event)),
            RateLimitErrorEvent: lambda event, _: self._failed(_rate_limit(event)),
            ContextExceededEvent: lambda event, _: self._failed(_context(event)),
            CrashEvent: lambda *_: self._closed(None),
            ErrorEvent: self._error,
        }

    def note_activity(self) -> None:
        """Note that a turn runs, even if its start was not reported."""
        self._open = True

    def _start(self, *_: Any) -> Facts:
        self._open = True
        return (facts.TurnBegin(),)

    def _end(self, event: TurnEndEvent, native: Mapping[str, Any]) -> Facts:
        if not self._open:
            return ()  # a terminal event inside the turn already ended it
        self._open = False
        self._has_cost = self._has_cost or event.cost is not None
        answer = native.get("structuredOutput")
        return (facts.TurnDone(event.cost, answer, event.stop_reason, reports_failures=True),)

    def _cost(self, event: CostEvent, _: Mapping[str, Any]) -> Facts:
        self._has_cost = True
        return (facts.RunCost(event.cost),)

    def _session_end(self, event: SessionEndEvent, _: Mapping[str, Any]) -> Facts:
        return () if event.cost is None or self._has_cost else (facts.RunCost(event.cost),)

    def _error(self, event: ErrorEvent, _: Mapping[str, Any]) -> Facts:
        if event.recoverable:
            return (facts.RecoverableError(event.code, event.message),)
        return self._failed(facts.Failure(event.code, event.message))

    def _failed(self, failure: facts.Failure) -> Facts:
        return self._closed(facts.TurnFailed(failure))

    def _closed(self, outcome: facts.TurnFailed | facts.TurnStopped | facts.TurnLimitHit | None) -> Facts:
        self._open = False
        return (facts.RunClosed(outcome),)


def _timeout(event: TimeoutEvent) -> facts.Failure:
    if event.kind == "inactivity":
        return facts.Failure("INACTIVITY_TIMEOUT", "the program gave up: nothing happened for too long")
    return facts.Failure("TIMEOUT", "the program gave up: it timed out")


def _auth(event: AuthErrorEvent) -> facts.Failure:
    return facts.Failure("AUTH_ERROR", event.message, event.guidance)


def _rate_limit(event: RateLimitErrorEvent) -> facts.Failure:
    return facts.Failure("RATE_LIMITED", event.message, retry_after_ms=event.retry_after_ms)


def _context(event: ContextExceededEvent) -> facts.Failure:
    why = "the context window is full"
    return facts.Failure("CONTEXT_EXCEEDED", why, used_tokens=event.used_tokens, max_tokens=event.max_tokens)
