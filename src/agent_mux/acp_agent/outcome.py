"""How a prompt ended: the stop reason of the protocol, or an error."""

from collections.abc import Mapping

from acp import RequestError
from acp.schema import PromptResponse, StopReason, Usage

from agent_mux.acp_agent.failures import failure_of_run, failure_of_turn
from agent_mux.assembler.verdict import TURN_LIMIT_REACHED
from agent_mux.errors import ErrorCode
from agent_mux.events import CostRecord, ErrorEvent
from agent_mux.run.result import RunResult

_BY_EXIT: Mapping[str, StopReason] = {
    "completed": "end_turn",
    "interrupted": "cancelled",
    "aborted": "cancelled",
    "turn_limit": "max_turn_requests",
}
_BY_CODE: Mapping[ErrorCode, StopReason] = {"ABORTED": "cancelled", "CONTEXT_EXCEEDED": "max_tokens"}
"""Failures that the protocol has a stop reason for."""

Outcome = StopReason | RequestError


def outcome_of_turn(error: ErrorEvent | None, guidance: str) -> Outcome:
    """The agent handed back, and lives on. `error`: what it said of the turn, if it failed."""
    if error is None:
        return "end_turn"
    if error.message == TURN_LIMIT_REACHED:
        return "max_turn_requests"
    return _BY_CODE.get(error.code) or failure_of_turn(error.code, error.message, guidance)


def outcome_of_run(result: RunResult, guidance: str) -> Outcome:
    """The run is over, and with it the turn."""
    known = _BY_EXIT.get(result.exit_reason)
    if known is None and result.error is not None:
        known = _BY_CODE.get(result.error.code)
    return known or failure_of_run(result.agent, result.error, guidance)


def response(reason: StopReason, cost: CostRecord | None) -> PromptResponse:
    """What the editor is told at the end of a turn that cost this."""
    return PromptResponse(stop_reason=reason, usage=None if cost is None else _usage(cost))


def _usage(cost: CostRecord) -> Usage:
    parts = (cost.input_tokens, cost.output_tokens, cost.cached_tokens or 0, cost.cache_creation_tokens or 0)
    return Usage(
        total_tokens=sum(parts),
        input_tokens=cost.input_tokens,
        output_tokens=cost.output_tokens,
        thought_tokens=cost.thinking_tokens,
        cached_read_tokens=cost.cached_tokens,
        cached_write_tokens=cost.cache_creation_tokens,
    )
