"""One prompt of the editor and its outcome: a stop reason of the protocol, or an error."""

from collections.abc import Mapping

import anyio
from acp import RequestError
from acp.schema import PromptResponse, StopReason, Usage

from agent_mux.acp_server.errors import run_error, turn_error
from agent_mux.errors import ErrorCode
from agent_mux.events import CostRecord, ErrorEvent
from agent_mux.run.result import RunResult

_BY_EXIT_REASON: Mapping[str, StopReason] = {
    "interrupted": "cancelled",
    "aborted": "cancelled",
    "turn_limit": "max_turn_requests",
}
_BY_ERROR_CODE: Mapping[ErrorCode, StopReason] = {
    "ABORTED": "cancelled",
    "CONTEXT_EXCEEDED": "max_tokens",
    "TURN_LIMIT": "max_turn_requests",
}
"""Errors that have a stop reason in the protocol."""

TurnOutcome = StopReason | RequestError


def turn_outcome(error: ErrorEvent | None, guidance: str, stop_reason: str | None = None) -> TurnOutcome:
    """Return the outcome of a turn whose agent is still running.

    Args:
        error: The error of the turn, if it failed.
        guidance: How to log in.
        stop_reason: Why the last answer of the turn ended.
    """
    if error is None:
        return _answered(stop_reason)
    return _BY_ERROR_CODE.get(error.code) or turn_error(error.code, error.message, guidance)


def run_outcome(result: RunResult, guidance: str) -> TurnOutcome:
    """Return the outcome of a turn that ended with its run."""
    is_answered = result.exit_reason == "completed"
    known = _answered(result.stop_reason) if is_answered else _BY_EXIT_REASON.get(result.exit_reason)
    if known is None and result.error is not None:
        known = _BY_ERROR_CODE.get(result.error.code)
    return known or run_error(result.agent, result.error, guidance)


def _answered(stop_reason: str | None) -> StopReason:
    """Return the stop reason of a turn with an answer, which may have been cut."""
    return "max_tokens" if stop_reason == "length" else "end_turn"


def prompt_response(reason: StopReason, cost: CostRecord | None) -> PromptResponse:
    """Return the response to a prompt, with the token usage of the turn."""
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


class EditorTurn:
    """The state of a prompt that is not answered yet."""

    def __init__(self) -> None:
        self.over = anyio.Event()
        self.is_sent = False
        """Whether the prompt was sent to the agent."""
        self.has_begun = False
        """Whether the agent has started on the prompt: the next turn end is that of this prompt."""
        self.is_follow_up = False
        """Whether the prompt was sent to a run that had worked on another prompt."""
        self.is_unread = False
        """Whether the run ended in order before the agent started on the prompt."""
        self.is_cancelled = False
        self.failure: ErrorEvent | None = None
        """The last event, if it was an error of the turn."""
        self.cost: CostRecord | None = None
        self._outcome: TurnOutcome = "cancelled"

    def finish(self, outcome: TurnOutcome) -> None:
        """Set the outcome. Later calls have no effect."""
        if not self.over.is_set():
            self._outcome = outcome
            self.over.set()

    def response(self) -> PromptResponse:
        """Return the response. Raise `RequestError` for a failed turn, unless it was cancelled."""
        if self.is_cancelled:
            return prompt_response("cancelled", self.cost)
        if isinstance(self._outcome, RequestError):
            raise self._outcome
        return prompt_response(self._outcome, self.cost)
