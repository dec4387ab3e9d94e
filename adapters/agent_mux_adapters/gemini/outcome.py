"""How a turn ended, and what it used, from the closing line of stream-json."""

from collections.abc import Mapping
from typing import Any

from agent_mux.facts import Fact, Failure, TurnDone, TurnFailed, TurnLimitHit, TurnStopped, Usage
from agent_mux_adapters._dialects.tolerant import mapping, text, whole
from agent_mux_adapters.gemini.failures import failure_of

TURN_LIMIT_ERROR = "FatalTurnLimitedError"
CANCELLED_ERROR = "FatalCancellationError"
LOOP = "Loop detected, stopping execution"
TOO_MANY_TURNS = "Maximum session turns exceeded"
ENDED_BY_NOTICE = frozenset({LOOP, TOO_MANY_TURNS})
"""The CLI calls it a success after that, too."""


def closing_of(native: Mapping[str, Any], notice: str, max_turns: int | None) -> Fact:
    """The closing fact of a `result` line. `notice`: the `error` line before it, if there was one."""
    error = mapping(native.get("error"))
    kind, said = text(error.get("type")), text(error.get("message"))
    if kind == TURN_LIMIT_ERROR or notice == TOO_MANY_TURNS:
        return TurnLimitHit(max_turns or 0)
    if kind == CANCELLED_ERROR:
        return TurnStopped()
    if native.get("status") == "success" and not notice:
        return TurnDone()
    return TurnFailed(failure_of(said or notice) if said or notice else _UNSAID)


def usage_of(stats: Mapping[str, Any]) -> Usage | None:
    """All tokens of the run: of its model calls and of those for routing, titles and sub-agents.

    `input_tokens` has the cached ones in it, `input` has not. Thoughts are in the total only: what is neither input nor
    output. None where no call came so far.
    """
    taken, given = whole(stats.get("input_tokens")), whole(stats.get("output_tokens"))
    total, cached = whole(stats.get("total_tokens")), whole(stats.get("cached"))
    if not taken and not given and not total:
        return None
    thought = max(total - taken - given, 0)
    return Usage(max(taken - cached, 0), given + thought, thought, cached, of_one_call=False)


_UNSAID = Failure("AGENT_CRASH", "gemini reports an error and does not say which")
