"""The event that says how a run ended, between the last turn and `session_end`. §20, §21, §25.5."""

from agent_mux.assembler.context import StreamContext
from agent_mux.assembler.emitter import Emitter
from agent_mux.assembler.figures import possible, possible_or_none
from agent_mux.assembler.verdict import Ending, Outcome, Verdict
from agent_mux.events.error import AuthErrorEvent, ContextExceededEvent, CrashEvent, ErrorEvent, RateLimitErrorEvent
from agent_mux.events.lifecycle import AbortedEvent, InterruptedEvent, TimeoutEvent, TurnLimitEvent
from agent_mux.sdk import facts


def emit_terminal(
    emitter: Emitter, context: StreamContext, verdict: Verdict, ending: Ending, outcome: Outcome | None
) -> None:
    """Say it. A run that completed says nothing more."""
    emit = emitter.emit
    match verdict.exit_reason:
        case "aborted":
            emit(AbortedEvent)
        case "interrupted":
            emit(InterruptedEvent)
        case "timeout":
            emit(TimeoutEvent, "run")
        case "inactivity":
            emit(TimeoutEvent, "inactivity")
        case "turn_limit":
            hit = outcome.max_turns if isinstance(outcome, facts.TurnLimitHit) else 0
            emit(TurnLimitEvent, possible(hit) or context.max_turns)
        case "crashed" | "killed":
            emit(CrashEvent, _crash_code(ending), ending.stderr or ending.message)
        case _ if verdict.failure is not None:
            _emit_failure(emitter, verdict.failure, context.auth_guidance)


def _emit_failure(emitter: Emitter, failure: facts.Failure, auth_guidance: str) -> None:
    emit = emitter.emit
    match failure.code:
        case "AUTH_ERROR":
            emit(AuthErrorEvent, failure.message, failure.guidance or auth_guidance)
        case "RATE_LIMITED":
            emit(RateLimitErrorEvent, failure.message, possible_or_none(failure.retry_after_ms))
        case "CONTEXT_EXCEEDED":
            emit(ContextExceededEvent, possible(failure.used_tokens), possible(failure.max_tokens))
        case _:
            emit(ErrorEvent, failure.code, failure.message, False)


def _crash_code(ending: Ending) -> int:
    if ending.signal is not None:
        return -ending.signal
    return ending.code if ending.code is not None else -1
