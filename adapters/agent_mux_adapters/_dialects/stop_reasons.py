"""Why a model ended its answer, in the terms of every provider and agent."""

from collections.abc import Mapping
from typing import Any, Final

from agent_mux.events.base import CostRecord, StopReason
from agent_mux.sdk.facts import Failure, TurnDone, TurnFailed

STOP_REASONS: Final[Mapping[str, StopReason]] = {
    "end_turn": "end",
    "stop": "end",
    "stop_sequence": "end",
    "length": "length",
    "max_output_tokens": "length",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "content-filter": "filtered",
    "content_filter": "filtered",
    "refusal": "filtered",
    "toolUse": "tool_use",
    "tool-calls": "tool_use",
    "tool_calls": "tool_use",
    "tool_use": "tool_use",
}
"""By the native term; the terms of different protocols do not contradict each other."""


_FILTERED: Final = Failure("CONTENT_FILTERED", "the provider blocked the answer: its content filter ended it")


def stop_reason_of(native: Any) -> StopReason | None:
    """Return the reason for a native term; None for an unknown one and for any other JSON value."""
    return STOP_REASONS.get(native) if isinstance(native, str) else None


def answered(native: Any, cost: CostRecord | None = None, structured_output: Any = None) -> TurnDone | TurnFailed:
    """Return the closing fact of a turn that ended with an answer. `native` is why the answer ended.

    A filtered answer is a failure, even if the agent reports success.
    """
    reason = stop_reason_of(native)
    if reason == "filtered":
        return TurnFailed(_FILTERED, cost, reason)
    return TurnDone(cost, structured_output, reason)
