"""What the terminal event of a run says about how it ended."""

from collections.abc import Mapping

from agent_mux import events as ev
from agent_mux.events import AgentEvent

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
