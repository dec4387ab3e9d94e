"""How a run ended: the exit reason, and the terminal event between the last turn and `session_end`.

The exit reason comes from the first of these that applies: what agent-mux did itself (abort, timeout), the agent's last
closing message, the exit of the process. `completed` requires the agent's own closing message.
See docs/spec/run-api.md, sections 2 and 3.3, and docs/spec/events.md, sections 20, 21 and 25.5.
"""

import signal
from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

import msgspec

from agent_mux.assembler.costs import non_negative, non_negative_or_none
from agent_mux.assembler.emitter import Emitter, StreamContext
from agent_mux.assembler.stderr_cause import find_cause
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
    "lost",
]
Cause = Literal["abort", "timeout", "inactivity", "turn_limit", "budget", "interrupt", "close", "spawn_error"]
"""What agent-mux itself did to the run."""

Outcome = facts.TurnDone | facts.TurnFailed | facts.TurnStopped | facts.TurnLimitHit
"""The agent's closing message of a turn."""

# Shells and many CLIs report a signal as exit code 128 + number. These signals are sent on purpose, not by a crash.
SENT_SIGNALS = {1: "SIGHUP", 2: "SIGINT", 3: "SIGQUIT", 9: "SIGKILL", 15: "SIGTERM"}


class Ending(msgspec.Struct, frozen=True, kw_only=True):
    """What agent-mux knows about the end of a run."""

    code: int | None = None
    """Exit code; None when a signal ended the process, or no process ran."""
    signal: int | None = None
    stderr: str = ""
    """The end of standard error."""
    cause: Cause | None = None
    is_lost: bool = False
    """Whether agent-mux itself was killed, so that nobody observed the end of the agent."""
    unanswered: bool = False
    """Whether a prompt was sent after the last turn and no turn started for it."""
    message: str = ""
    """Details of the cause: the operating system's error for a failed start, or the amount spent."""


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """The exit reason of a run and its error."""

    exit_reason: ExitReason
    failure: facts.Failure | None = None
    """The error; None when the run completed."""


OUT_OF_MEMORY_HINT = (
    "; if nobody did that, the system was probably out of memory (`dmesg` or `journalctl -k` shows it): give the "
    "machine or the container more memory, or run fewer agents at the same time"
)
NO_LIMITS: Mapping[str, str] = MappingProxyType({})
_BUDGETS: Mapping[str, str] = {"max_cost_usd": "cost", "max_tokens_total": "tokens"}
"""Options that are budgets, and what each limits."""
TURN_LIMIT_REACHED = "the turn limit was reached"
"""The error message of a turn that stopped at the limit."""
_LOST = Verdict(
    exit_reason="lost",
    failure=facts.Failure(
        "RUN_LOST",
        "the recording of the run has no end: agent-mux was killed, or the disk was full; start the run again",
    ),
)
_INTERRUPTED = Verdict(exit_reason="interrupted", failure=facts.Failure("ABORTED", "the run was interrupted"))


def determine_verdict(
    ending: Ending, outcome: Outcome | None, *, turn_open: bool, agent: str, limits: Mapping[str, str] = NO_LIMITS
) -> Verdict:
    """Determine how the run ended.

    Args:
        ending: What agent-mux knows about the end.
        outcome: The closing message of the last turn; None when the agent printed none.
        turn_open: Whether the agent did something after that message.
        agent: The agent's name for error messages.
        limits: The value and the source of each limit of the run, by the name of its option.
    """
    verdict = _verdict_of_cause(ending, agent, limits)
    if verdict is not None:
        return verdict
    if isinstance(outcome, facts.TurnStopped) and ending.signal == signal.SIGKILL and ending.cause is None:
        outcome = None  # a child of the killed agent reported that its work was interrupted
    turn_open = turn_open or ending.unanswered
    if turn_open or outcome is None:
        began = turn_open or outcome is not None
        return _LOST if ending.is_lost else _without_closing_message(ending, agent, began=began)
    match outcome:
        case facts.TurnDone():
            return Verdict(exit_reason="completed")
        case facts.TurnFailed(failure):
            is_budget = failure.code == "BUDGET_EXCEEDED"
            return Verdict(
                exit_reason="budget" if is_budget else "failed",
                failure=_with_budgets(failure, limits) if is_budget else failure,
            )
        case facts.TurnLimitHit():
            return _turn_limit(limits)
        case facts.TurnStopped():
            return _INTERRUPTED


def without_answer(outcome: Outcome, output_tokens: int, agent: str) -> Outcome:
    """Return the outcome of a turn that has no message and nothing else to show: success becomes a failure.

    The model's output was paid for and is not in the events, so the turn cannot have completed.
    """
    if not isinstance(outcome, facts.TurnDone) or outcome.structured_output is not None or not output_tokens:
        return outcome
    why = f"{agent} ended the turn without an answer, although the model produced {output_tokens} tokens"
    return facts.TurnFailed(facts.Failure("EMPTY_ANSWER", why), outcome.cost, outcome.stop_reason)


def _turn_limit(limits: Mapping[str, str]) -> Verdict:
    limit = limits.get("max_model_calls")
    message = TURN_LIMIT_REACHED if limit is None else f"{TURN_LIMIT_REACHED}: model calls: {limit}"
    return Verdict(exit_reason="turn_limit", failure=facts.Failure("TURN_LIMIT", message))


def _with_budgets(failure: facts.Failure, limits: Mapping[str, str]) -> facts.Failure:
    """Return the failure that the agent reported for an exceeded budget, with the budgets that the run has."""
    budgets = [f"{noun}: {limits[name]}" for name, noun in _BUDGETS.items() if name in limits]
    return msgspec.structs.replace(failure, message="; ".join((failure.message, *budgets))) if budgets else failure


def _verdict_of_cause(ending: Ending, agent: str, limits: Mapping[str, str]) -> Verdict | None:  # noqa: PLR0911  # a table
    match ending.cause:
        case "abort":
            return Verdict(exit_reason="aborted", failure=facts.Failure("ABORTED", "the run was aborted"))
        case "timeout":
            message = "the run exceeded its time limit" + _of(limits.get("timeout"))
            return Verdict(exit_reason="timeout", failure=facts.Failure("TIMEOUT", message))
        case "inactivity":
            limit = limits.get("inactivity_timeout")
            duration = "too long" if limit is None else limit
            why = facts.Failure("INACTIVITY_TIMEOUT", f"{agent} produced no output for {duration}")
            return Verdict(exit_reason="inactivity", failure=why)
        case "turn_limit":
            return _turn_limit(limits)
        case "budget":
            return Verdict(exit_reason="budget", failure=facts.Failure("BUDGET_EXCEEDED", ending.message))
        case "spawn_error":
            return Verdict(exit_reason="crashed", failure=facts.Failure("SPAWN_ERROR", ending.message))
    return None


def _of(limit: str | None) -> str:
    return "" if limit is None else f" of {limit}"


def _without_closing_message(ending: Ending, agent: str, *, began: bool) -> Verdict:
    if ending.cause == "interrupt":
        return _INTERRUPTED
    if ending.cause == "close" and not began and ending.code == 0:
        return Verdict(exit_reason="completed")
    number = ending.signal if ending.signal is not None else (ending.code or 0) - 128
    if number in SENT_SIGNALS:
        why = f"{agent} was killed by {SENT_SIGNALS[number]} before its closing message"
        why += OUT_OF_MEMORY_HINT if number == signal.SIGKILL else ""
        return Verdict(exit_reason="killed", failure=facts.Failure("AGENT_CRASH", why))
    if ending.signal is not None:
        why = f"{agent} was ended by signal {ending.signal} before its closing message"
        return Verdict(exit_reason="crashed", failure=facts.Failure("AGENT_CRASH", why))
    if ending.code:
        cause = find_cause(ending.stderr) or "nothing on stderr"
        why = f"{agent} exited with code {ending.code} before its closing message: {cause[:500]}"
        return Verdict(exit_reason="crashed", failure=facts.Failure("AGENT_CRASH", why))
    how = "exited with code 0" if ending.code == 0 else "ended"
    why = f"{agent} {how} without its closing message: the output is incomplete"
    return Verdict(exit_reason="truncated", failure=facts.Failure("AGENT_CRASH", why))


def emit_terminal(
    emitter: Emitter, context: StreamContext, verdict: Verdict, ending: Ending, outcome: Outcome | None
) -> None:
    """Emit the terminal event. A completed run has none."""
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
            emit(TurnLimitEvent, non_negative(hit) or context.max_turns)
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
            emit(RateLimitErrorEvent, failure.message, non_negative_or_none(failure.retry_after_ms))
        case "CONTEXT_EXCEEDED":
            emit(ContextExceededEvent, non_negative(failure.used_tokens), non_negative(failure.max_tokens))
        case _:
            emit(ErrorEvent, failure.code, failure.message, False)


def _crash_code(ending: Ending) -> int:
    if ending.signal is not None:
        return -ending.signal
    return ending.code if ending.code is not None else -1
