"""How a run ended, and why: never a guess. Run API, section 2 (RunResult) and section 9; design, "Verdicts".

`completed` needs the agent's own closing message. What the mux did itself (abort, time-out) comes first; then the
agent's closing message; then how the process died.


The event that says how a run ended, between the last turn and `session_end`. §20, §21, §25.5.
"""

from typing import Literal

import msgspec

from agent_mux.assembler.emitter import Emitter, StreamContext, possible, possible_or_none
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
from agent_mux.sdk import facts

ExitReason = Literal[
    "completed",
    "failed",
    "truncated",
    "aborted",
    "interrupted",
    "timeout",
    "inactivity",
    "turn_limit",
    "budget",
    "crashed",
    "killed",
]
Cause = Literal["abort", "timeout", "inactivity", "turn_limit", "budget", "interrupt", "close", "spawn_error"]
"""What the mux itself did to the run."""

Outcome = facts.TurnDone | facts.TurnFailed | facts.TurnStopped | facts.TurnLimitHit

# Shells and many CLIs report a signal as 128 + its number; these are the ones somebody sends on purpose.
SENT_SIGNALS = {1: "SIGHUP", 2: "SIGINT", 9: "SIGKILL", 15: "SIGTERM"}


class Ending(msgspec.Struct, frozen=True, kw_only=True):
    """What is known when the run is over."""

    code: int | None = None
    """Exit code; None when a signal ended the process, or when there was none."""
    signal: int | None = None
    stderr: str = ""
    """The tail of standard error."""
    cause: Cause | None = None
    unanswered: bool = False
    """A prompt was sent after the last turn ended, and no turn took it up."""
    message: str = ""
    """Of the cause: what the operating system said to a start that failed, or what was spent."""


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """How the run ended."""

    exit_reason: ExitReason
    failure: facts.Failure | None = None
    """The error, unless the run completed."""


TURN_LIMIT_REACHED = "the turn limit was reached"
"""What the error says of a turn that stopped at the limit, where the run goes on."""
_TURN_LIMIT = Verdict(exit_reason="turn_limit", failure=facts.Failure("ABORTED", TURN_LIMIT_REACHED))
_INTERRUPTED = Verdict(exit_reason="interrupted", failure=facts.Failure("ABORTED", "the run was interrupted"))


def judge(ending: Ending, outcome: Outcome | None, *, turn_open: bool, agent: str) -> Verdict:
    """Decide. `outcome` is the closing message of the last turn; `turn_open` says that something came after it."""
    imposed = _imposed(ending, agent)
    if imposed is not None:
        return imposed
    turn_open = turn_open or ending.unanswered
    if turn_open or outcome is None:
        return _without_closing_message(ending, agent, began=turn_open or outcome is not None)
    match outcome:
        case facts.TurnDone():
            return Verdict(exit_reason="completed")
        case facts.TurnFailed(failure):
            return Verdict(exit_reason="budget" if failure.code == "BUDGET_EXCEEDED" else "failed", failure=failure)
        case facts.TurnLimitHit():
            return _TURN_LIMIT
        case facts.TurnStopped():
            return _INTERRUPTED


def _imposed(ending: Ending, agent: str) -> Verdict | None:  # noqa: PLR0911  # a table
    """What the mux did itself."""
    match ending.cause:
        case "abort":
            return Verdict(exit_reason="aborted", failure=facts.Failure("ABORTED", "the run was aborted"))
        case "timeout":
            return Verdict(exit_reason="timeout", failure=facts.Failure("TIMEOUT", "the run ran out of time"))
        case "inactivity":
            why = facts.Failure("INACTIVITY_TIMEOUT", f"{agent} printed nothing for too long")
            return Verdict(exit_reason="inactivity", failure=why)
        case "turn_limit":
            return _TURN_LIMIT
        case "budget":
            return Verdict(exit_reason="budget", failure=facts.Failure("BUDGET_EXCEEDED", ending.message))
        case "spawn_error":
            return Verdict(exit_reason="crashed", failure=facts.Failure("SPAWN_ERROR", ending.message))
    return None


def _without_closing_message(ending: Ending, agent: str, *, began: bool) -> Verdict:
    if ending.cause == "interrupt":
        return _INTERRUPTED
    if ending.cause == "close" and not began and ending.code == 0:
        return Verdict(exit_reason="completed")
    number = ending.signal if ending.signal is not None else (ending.code or 0) - 128
    if number in SENT_SIGNALS:
        why = f"{agent} was killed by {SENT_SIGNALS[number]} before its closing message"
        return Verdict(exit_reason="killed", failure=facts.Failure("AGENT_CRASH", why))
    if ending.signal is not None:
        why = f"{agent} was ended by signal {ending.signal} before its closing message"
        return Verdict(exit_reason="crashed", failure=facts.Failure("AGENT_CRASH", why))
    if ending.code:
        tail = ending.stderr.strip().splitlines()[-1:] or ["it said nothing on stderr"]
        why = f"{agent} exited with code {ending.code} before its closing message: {tail[0][:500]}"
        return Verdict(exit_reason="crashed", failure=facts.Failure("AGENT_CRASH", why))
    how = "exited with code 0" if ending.code == 0 else "ended"
    why = f"{agent} {how} without its closing message: the output is incomplete"
    return Verdict(exit_reason="truncated", failure=facts.Failure("AGENT_CRASH", why))


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
