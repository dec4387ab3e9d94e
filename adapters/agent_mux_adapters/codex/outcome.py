"""How a turn ended, and what it answered."""

from collections.abc import Iterable
from typing import Any

import msgspec

from agent_mux.events.cost import CostRecord
from agent_mux.facts import Fact, Note, RunCost, TurnDone, TurnFailed, TurnStopped
from agent_mux_adapters.codex.failures import failure_of
from agent_mux_adapters.codex.meter import cost_of, sum_of
from agent_mux_adapters.codex.thread import Thread
from agent_mux_adapters.codex.wire import Tokens, Turn, TurnError, read

_NOTHING = Tokens()


def closing_of(
    thread: Thread, turn: Turn, spent: Iterable[Tokens], schema: dict[str, Any] | None
) -> tuple[Fact, ...] | None:
    """The closing facts of a turn of the main thread. `spent`: of every thread of the run, in this run."""
    closing = _outcome_of(thread, turn, schema)
    return None if closing is None else (*cost_of_run(spent), *closing)


def cost_of_run(spent: Iterable[Tokens]) -> tuple[Fact, ...]:
    """What the threads of a run used together; nothing when that is nothing."""
    total = _NOTHING
    for tokens in spent:
        total = sum_of(total, tokens)
    return (RunCost(cost_of(total)),) if total != _NOTHING else ()


def cost_of_turn(thread: Thread) -> CostRecord | None:
    """What the last turn of a thread used; None when that is nothing."""
    return cost_of(thread.spent_in_turn) if thread.spent_in_turn != _NOTHING else None


def failure_inside(thread: Thread, turn: Turn) -> str | None:
    """Why a sub-agent's turn gave no result; None when it did."""
    error = _error_of(thread, turn)
    if turn.status == "completed":
        return None
    return error.message if error is not None else f"the turn ended as {turn.status}"


def parsed_answer(text: str, schema: dict[str, Any] | None) -> Any:
    """The last message as JSON, where an output schema was asked for; None when it is not."""
    if schema is None:
        return None
    try:
        return msgspec.json.decode(text.encode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None


def _outcome_of(thread: Thread, turn: Turn, schema: dict[str, Any] | None) -> tuple[Fact, ...] | None:
    cost = cost_of_turn(thread)
    error = _error_of(thread, turn)
    match turn.status:
        case "completed":
            return (TurnDone(cost, parsed_answer(thread.answer, schema)),)
        case "interrupted":
            why = (Note(f"codex interrupted the turn: {error.message}", "warn"),) if error is not None else ()
            return *why, TurnStopped(cost)
        case "failed":
            message = error.message if error is not None else "codex does not say why the turn failed"
            info = error.codex_error_info if error is not None else None
            used, size = thread.context_used, thread.context_size
            return (TurnFailed(failure_of(message, info, used_tokens=used, max_tokens=size), cost),)
    return None


def _error_of(thread: Thread, turn: Turn) -> TurnError | None:
    error, thread.error = thread.error, None
    return read(TurnError, turn.error) or error
