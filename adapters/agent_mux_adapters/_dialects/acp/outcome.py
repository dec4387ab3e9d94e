"""How a prompt ended."""

from agent_mux.facts import Fact, Failure, TurnDone, TurnFailed, TurnLimitHit, TurnStopped
from agent_mux_adapters._dialects.acp.quirks import AcpQuirks, Ended

_FAILURES = {
    "max_tokens": "the model reached its token limit and the answer is cut off",
    "refusal": "the model refused to go on",
}


def closing_of(ended: Ended, quirks: AcpQuirks, *, max_turns: int | None) -> Fact:
    """The closing fact of a turn."""
    special = quirks.ended(ended)
    if special is not None:
        return special
    reason, cost = ended.stop_reason, ended.cost
    match reason:
        case "cancelled":
            return TurnStopped(cost)
        case "max_turn_requests":
            return TurnLimitHit(max_turns or 0, cost)
        case _ if ended.failure is not None:
            return TurnFailed(ended.failure, cost)
        case "end_turn":
            return TurnDone(cost)
    why = _FAILURES.get(reason) or f"{quirks.agent} stopped for a reason that is not known: {reason or 'none'}"
    return TurnFailed(Failure("AGENT_CRASH", why), cost)
