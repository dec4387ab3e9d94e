"""The closing fact of a turn: how a loop ended, or the error that ended it."""

from typing import Any

from agent_loop.cli.errors import code_of, message_of
from agent_loop.errors import ProviderErrorKind
from agent_loop.events import LimitReached, LoopEnd, LoopLimit
from agent_loop.messages import StopReason
from agent_loop.usage import Usage
from agent_mux.errors import ErrorCode
from agent_mux.events import base as events
from agent_mux.events.base import CostRecord
from agent_mux.sdk import facts

AUTH_GUIDANCE = "Set the key of the provider in the environment, for example ANTHROPIC_API_KEY or OPENAI_API_KEY."
_CODES: dict[ProviderErrorKind | str, ErrorCode] = {
    "auth": "AUTH_ERROR",
    "rate_limited": "RATE_LIMITED",
    "quota": "RATE_LIMITED",
    "context_exceeded": "CONTEXT_EXCEEDED",
    "network": "NETWORK_ERROR",
    "provider": "AGENT_CRASH",
    "aborted": "ABORTED",
    "filtered": "CONTENT_FILTERED",
    "empty": "EMPTY_ANSWER",
}
"""The codes of provider errors. For consumers of events, a model that does not respond is a crash of the agent."""

_LIMIT_CODES: dict[LoopLimit, ErrorCode] = {"duration": "TIMEOUT", "repetition": "LOOP_DETECTED"}
_STOP_REASONS: dict[StopReason, events.StopReason] = {"stop": "end", "length": "length", "tool_use": "tool_use"}


def outcome_of(
    end: LoopEnd,
    limit: LimitReached | None,
    *,
    structured: Any,
    context: tuple[int, int],
    stop_reason: StopReason | None,
) -> facts.TurnDone | facts.TurnFailed | facts.TurnStopped | facts.TurnLimitHit:
    """Return the closing fact of a loop.

    `limit` is the limit that the loop reached, `context` the used and the available tokens of the context window,
    `stop_reason` why the last answer of the model ended.
    """
    cost = cost_record(end.usage)
    match end.status:
        case "completed":
            return facts.TurnDone(cost, structured, _STOP_REASONS.get(stop_reason) if stop_reason else None)
        case "aborted":
            return facts.TurnStopped(cost)
        case "rejected":
            reason = end.rejection or "the prompt was rejected by an input filter"
            return facts.TurnFailed(facts.Failure("VALIDATION_ERROR", reason), cost)
        case "limited":
            if end.limit == "output":  # for consumers of events a cut answer is complete, with its stop reason
                return facts.TurnDone(cost, structured, "length")
            return _limit_outcome(end, limit, cost)
        case "failed":
            return facts.TurnFailed(_loop_failure(end, context), cost)


def failure_of(error: BaseException) -> facts.Failure:
    """Return an exception as a failure of the event contract."""
    code = code_of(error)
    return facts.Failure(code, message_of(error), guidance=AUTH_GUIDANCE if code == "AUTH_ERROR" else "")


def cost_record(usage: Usage) -> CostRecord | None:
    """Return the cost of the usage, None if the price is unknown."""
    if usage.cost_usd is None:
        return None
    return CostRecord(
        total_usd=usage.cost_usd,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        thinking_tokens=usage.thinking_tokens,
        cached_tokens=usage.cache_read_tokens,
        cache_creation_tokens=usage.cache_write_tokens,
        source="native",
    )


def _limit_outcome(
    end: LoopEnd, limit: LimitReached | None, cost: CostRecord | None
) -> facts.TurnFailed | facts.TurnLimitHit:
    if limit is None or limit.limit in {"iterations", "turns"}:
        return facts.TurnLimitHit(end.turns, cost)
    return facts.TurnFailed(facts.Failure(_LIMIT_CODES.get(limit.limit, "BUDGET_EXCEEDED"), limit.reason), cost)


def _loop_failure(end: LoopEnd, context: tuple[int, int]) -> facts.Failure:
    kind = "provider" if end.error_kind == "network" and end.error_status is not None else end.error_kind
    code = _CODES.get(kind or "provider", "INTERNAL")  # a provider that responds can be reached
    used, available = context
    return facts.Failure(
        code,
        end.error or "the run failed without an error message",
        guidance=AUTH_GUIDANCE if code == "AUTH_ERROR" else "",
        retry_after_ms=round(end.retry_after * 1000) if end.retry_after is not None else None,
        used_tokens=used if end.used_tokens is None else end.used_tokens,
        max_tokens=available if end.max_tokens is None else end.max_tokens,
    )
