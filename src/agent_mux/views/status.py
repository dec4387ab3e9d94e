"""The status of a run, from its events alone."""

from typing import Any

from agent_mux import events as ev
from agent_mux.events import BaseEvent
from agent_mux.views.cards import RunActivity, StatusCard

_TERMINAL = frozenset({
    "crash", "auth_error", "rate_limit_error", "context_exceeded", "timeout", "turn_limit", "aborted", "interrupted",
})  # fmt: skip
_ACTIVITIES: dict[str, RunActivity] = {
    "turn_start": "working",
    "resumed": "working",
    "paused": "paused",
    "rate_limited": "delayed",
    "retry": "delayed",
    "approval_request": "waiting",
    "input_required": "waiting",
    "turn_end": "idle",
    "session_end": "ended",
}
"""The activity after an event."""
_WORKING = frozenset({
    "step_start", "message_start", "thinking_start", "text_delta", "tool_call_start", "mcp_tool_call_start",
    "tool_call_ready", "tool_result", "tool_error", "mcp_tool_result", "mcp_tool_error", "subagent_spawn",
})  # fmt: skip
"""Events that show that the agent works, whatever delayed it."""


class StatusReducer:
    """Updates the status card of one run."""

    def __init__(self, card: StatusCard) -> None:
        self.card = card
        self._pending: set[str] = set()
        """Ids of open approvals."""
        self._asked = False
        """Whether a question is open: until the agent continues, since no event closes it."""

    def update(self, event: BaseEvent, running: list[str]) -> bool:
        """Apply one event. Returns whether anything but the time changed."""
        card = self.card
        before = (card.activity, card.running)
        card.updated_at = event.timestamp
        card.running = running
        card.activity = self._activity_after(event)
        return self._take_figures(event) or before != (card.activity, card.running)

    def _activity_after(self, event: BaseEvent) -> RunActivity:
        self._note_requests(event)
        if event.type in {"approval_granted", "approval_denied"}:
            was_waiting = self.card.activity == "waiting"
            return "working" if was_waiting and not self._is_waiting else self.card.activity
        if event.type in _ACTIVITIES:
            return _ACTIVITIES[event.type]
        if event.type in _WORKING and event.subagent_id is None and self.card.activity != "paused":
            return "waiting" if self._is_waiting else "working"
        return self.card.activity

    @property
    def _is_waiting(self) -> bool:
        return self._asked or bool(self._pending)

    def _note_requests(self, event: BaseEvent) -> None:
        match event:
            case ev.ApprovalRequestEvent():
                self._pending.add(event.interaction_id)
            case ev.ApprovalGrantedEvent() | ev.ApprovalDeniedEvent():
                self._pending.discard(event.interaction_id)
            case ev.InputRequiredEvent():
                self._asked = True
            case ev.TurnEndEvent() | ev.SessionEndEvent():
                self._pending.clear()
                self._asked = False
            case _ if event.type in _WORKING and event.subagent_id is None:
                self._asked = False

    def _take_figures(self, event: Any) -> bool:
        card = self.card
        match event:
            case ev.SessionStartEvent():
                card.session_id, card.agent_version, card.agent = event.session_id, event.agent_version, event.agent
            case ev.TurnStartEvent():
                card.turns = event.turn_index + 1
            case ev.TokenUsageEvent():
                card.input_tokens += event.input_tokens
                card.output_tokens += event.output_tokens
                card.quota = event.quota or card.quota
            case ev.CostEvent():
                card.cost = event.cost
            case ev.ContextLimitWarningEvent():
                card.context_used = event.pct_used
            case ev.RetryEvent():
                card.model = event.next_model or card.model
                card.agent = event.next_agent or card.agent
                card.ended_by = None
            case ev.ErrorEvent(recoverable=False):
                card.ended_by = event.type
            case _ if event.type in _TERMINAL:
                card.ended_by = event.type
            case _:
                return False
        return True
