"""The reducer: one event in, the changed cards out.

Memory is bounded: a card keeps the beginning and the end of long texts, and a timeline keeps `max_cards` cards.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from agent_mux import events as ev
from agent_mux.events import BaseEvent
from agent_mux.views.calls import AnyFileEvent, OpenCalls, bounded
from agent_mux.views.cards import (
    AnyCard,
    ApprovalCard,
    CallState,
    Card,
    CostCard,
    Decision,
    ErrorCard,
    MessageCard,
    NoticeCard,
    QuestionCard,
    StatusCard,
    SubagentCard,
    ThinkingCard,
    ToolCard,
)
from agent_mux.views.status import StatusReducer

_Card = TypeVar("_Card", bound=Card)
MAX_CARDS = 1000
MAX_EARLY = 100
"""Requests that are kept for calls that have not started."""
_STATE_AFTER: dict[Decision, CallState] = {"pending": "waiting", "granted": "running", "denied": "denied"}


class _Scope:
    """What is open in the main stream, or inside one sub-agent."""

    def __init__(self) -> None:
        self.message: MessageCard | None = None
        self.thinking: ThinkingCard | None = None
        self.calls = OpenCalls()


class Timeline:
    """The cards of one run, in the order in which they began."""

    def __init__(self, *, max_cards: int = MAX_CARDS) -> None:
        self._cards: dict[str, AnyCard] = {}
        self._max_cards = max_cards
        self._count = 0
        self._scopes: dict[str | None, _Scope] = {}
        self._subagents: dict[str, SubagentCard] = {}
        self._approvals: dict[str, tuple[ApprovalCard, ToolCard | None]] = {}
        self._early: dict[str, ApprovalCard] = {}
        """Requests by the id of their call, which has not started yet."""
        self._question: QuestionCard | None = None
        self._cost: CostCard | None = None
        self._status: StatusReducer | None = None
        self.dropped = 0
        """Number of old cards that are no longer kept."""

    def __iter__(self) -> Iterator[AnyCard]:
        """Iterate over the kept cards, the oldest first."""
        return iter(list(self._cards.values()))

    def __len__(self) -> int:
        return len(self._cards)

    def get(self, card_id: str) -> AnyCard | None:
        """Return the card with this id; None if it is not kept."""
        return self._cards.get(card_id)

    @property
    def status(self) -> StatusCard | None:
        """The state of the run; None before its first event."""
        return None if self._status is None else self._status.card

    def feed(self, event: BaseEvent) -> list[AnyCard]:
        """Apply one event and return the cards that it created or changed. Unknown events change nothing."""
        changed: list[AnyCard] = []
        if self._question is not None and event.type in _AFTER_ANSWER and event.subagent_id is None:
            changed.append(self._close(self._question, event))
            self._question = None
        handler = _HANDLERS.get(event.type)
        if handler is not None:
            changed += handler(self, event)
        changed += self._update_status(event)
        for card in changed:
            card.version += 1
        return changed

    # -- keeping cards

    def _create(self, kind: type[_Card], event: BaseEvent, /, **fields: Any) -> _Card:
        name = kind.__struct_config__.tag
        self._count += 1
        card = kind(
            id=f"{name}-{self._count}",
            agent=event.agent,
            started_at=event.timestamp,
            subagent_id=event.subagent_id,
            version=-1,  # `feed` counts the creation
            **fields,
        )
        self._cards[card.id] = card  # type: ignore[assignment]  # every subclass is in the union
        if len(self._cards) > self._max_cards:
            self._drop_one()
        return card

    def _drop_one(self) -> None:
        """Drop the oldest closed card, else the oldest one."""
        closed = (card.id for card in self._cards.values() if not card.is_open)
        oldest = next(closed, None) or next(
            (card.id for card in self._cards.values() if not isinstance(card, StatusCard | CostCard)), None
        )
        if oldest is not None:
            del self._cards[oldest]
            self.dropped += 1

    @staticmethod
    def _close(card: _Card, event: BaseEvent) -> _Card:
        card.ended_at = event.timestamp
        return card

    def _scope(self, event: BaseEvent) -> _Scope:
        return self._scopes.setdefault(event.subagent_id, _Scope())

    def _update_status(self, event: BaseEvent) -> list[AnyCard]:
        if self._status is None:
            self._status = StatusReducer(self._create(StatusCard, event))
        return [self._status.card] if self._status.update(event, self._running()) else []

    def _running(self) -> list[str]:
        scope = self._scopes.get(None)
        if scope is None:
            return [card.id for card in self._subagents.values()]
        texts = [card for card in (scope.thinking, scope.message) if card is not None]
        return [card.id for card in (*self._subagents.values(), *texts, *scope.calls)]

    # -- text

    def _message_started(self, event: ev.MessageStartEvent) -> list[AnyCard]:
        self._scope(event).message = card = self._create(MessageCard, event)
        return [card]

    def _text(self, event: ev.TextDeltaEvent) -> list[AnyCard]:
        card = self._scope(event).message
        if card is None:
            return []
        card.text.append(event.delta)
        return [card]

    def _message_stopped(self, event: ev.MessageStopEvent) -> list[AnyCard]:
        scope = self._scope(event)
        card, scope.message = scope.message or self._create(MessageCard, event), None
        if not card.text:
            card.text.append(event.text)
        card.state = "abandoned" if event.abandoned else "done"
        return [self._close(card, event)]

    def _thinking_started(self, event: ev.ThinkingStartEvent) -> list[AnyCard]:
        self._scope(event).thinking = card = self._create(ThinkingCard, event, effort=event.effort)
        return [card]

    def _thinking(self, event: ev.ThinkingDeltaEvent) -> list[AnyCard]:
        card = self._scope(event).thinking
        if card is None:
            return []
        card.text.append(event.delta)
        return [card]

    def _thinking_stopped(self, event: ev.ThinkingStopEvent) -> list[AnyCard]:
        scope = self._scope(event)
        card, scope.thinking = scope.thinking or self._create(ThinkingCard, event), None
        if not card.text:
            card.text.append(event.thinking)
        card.state = "done"
        return [self._close(card, event)]

    # -- tool calls

    def _call_started(self, event: ev.ToolCallStartEvent) -> list[AnyCard]:
        card = self._create(ToolCard, event, tool_call_id=event.tool_call_id, tool_name=event.tool_name)
        if event.input_accumulated:
            card.input_text.append(event.input_accumulated)
        return self._add_call(card, event)

    def _mcp_started(self, event: ev.McpToolCallStartEvent) -> list[AnyCard]:
        card = self._create(
            ToolCard,
            event,
            tool_call_id=event.tool_call_id,
            tool_name=event.tool_name,
            server=event.server,
            input=event.input,
            state="running",
        )
        return self._add_call(card, event)

    def _add_call(self, card: ToolCard, event: BaseEvent) -> list[AnyCard]:
        self._scope(event).calls.add(card)
        early = self._early.pop(card.tool_call_id, None)
        if early is not None:
            self._relate(early, card)
        parent = self._subagents.get(event.subagent_id or "")
        if parent is None:
            return [card]
        parent.tool_calls += 1
        return [card, parent]

    def _relate(self, approval: ApprovalCard, call: ToolCard) -> None:
        """Relate a call to a request that came before it."""
        if approval.interaction_id in self._approvals:
            self._approvals[approval.interaction_id] = (approval, call)
        call.decision, call.denial_reason = approval.state, approval.reason
        call.state = _STATE_AFTER[approval.state]

    def _input(self, event: ev.ToolInputDeltaEvent) -> list[AnyCard]:
        card = self._scope(event).calls.find(event.tool_call_id)
        if card is None:
            return []
        card.input_text.append(event.delta)
        return [card]

    def _call_ready(self, event: ev.ToolCallReadyEvent) -> list[AnyCard]:
        card = self._scope(event).calls.find(event.tool_call_id)
        if card is None:
            return []
        card.input = event.input
        if card.state == "preparing":
            card.state = "running"
        return [card]

    def _call_succeeded(self, event: ev.ToolResultEvent | ev.McpToolResultEvent) -> list[AnyCard]:
        card = self._scope(event).calls.end(event.tool_call_id, event.output)
        if card is None:
            return []
        card.state = "succeeded"
        if isinstance(event, ev.ToolResultEvent) and card.exit_code is None:  # else the time of the command
            card.duration_ms = event.duration_ms
        return [self._close(card, event)]

    def _call_failed(self, event: ev.ToolErrorEvent | ev.McpToolErrorEvent) -> list[AnyCard]:
        card = self._scope(event).calls.end(event.tool_call_id, None)
        if card is None:
            return []
        card.state = "denied" if card.decision == "denied" else "failed"
        card.error = bounded(event.error)
        return [self._close(card, event)]

    def _shell_started(self, event: ev.ShellStartEvent) -> list[AnyCard]:
        return _present(self._scope(event).calls.shell_started(event))

    def _shell_output(self, event: ev.ShellStdoutDeltaEvent | ev.ShellStderrDeltaEvent) -> list[AnyCard]:
        return _present(self._scope(event).calls.shell_output(event.delta))

    def _shell_ended(self, event: ev.ShellExitEvent) -> list[AnyCard]:
        return _present(self._scope(event).calls.shell_ended(event))

    def _file(self, event: AnyFileEvent) -> list[AnyCard]:
        return _present(self._scope(event).calls.file_touched(event))

    # -- sub-agents

    def _subagent_spawned(self, event: ev.SubagentSpawnEvent) -> list[AnyCard]:
        card = self._create(SubagentCard, event, agent_name=event.agent_name, prompt=bounded(event.prompt))
        self._subagents[event.subagent_id] = card
        return [card]

    def _subagent_ended(self, event: ev.SubagentResultEvent | ev.SubagentErrorEvent) -> list[AnyCard]:
        card = self._subagents.pop(event.subagent_id, None)
        self._scopes.pop(event.subagent_id, None)
        if card is None:
            return []
        if isinstance(event, ev.SubagentResultEvent):
            card.state, card.summary, card.cost = "succeeded", bounded(event.summary), event.cost
        else:
            card.state, card.error = "failed", bounded(event.error)
        return [self._close(card, event)]

    # -- approvals and questions

    def _approval_requested(self, event: ev.ApprovalRequestEvent) -> list[AnyCard]:
        card = self._create(
            ApprovalCard,
            event,
            interaction_id=event.interaction_id,
            action=event.action,
            detail=event.detail,
            risk_level=event.risk_level,
            tool_call_id=event.tool_call_id,
            command=event.command,
            paths=event.paths,
            diff=event.diff,
        )
        call = self._scope(event).calls.find(event.tool_call_id)
        self._approvals[event.interaction_id] = (card, call)
        if call is None:
            if event.tool_call_id is not None and len(self._early) < MAX_EARLY:
                self._early[event.tool_call_id] = card
            return [card]
        call.state, call.decision = "waiting", "pending"
        return [card, call]

    def _approval_granted(self, event: ev.ApprovalGrantedEvent) -> list[AnyCard]:
        card, call = self._approvals.pop(event.interaction_id, (None, None))
        if card is None:
            return []
        card.state = "granted"
        if call is not None:
            call.decision = "granted"
            if call.is_open:
                call.state = "running"
        return [self._close(card, event), *_present(call)]

    def _approval_denied(self, event: ev.ApprovalDeniedEvent) -> list[AnyCard]:
        card, call = self._approvals.pop(event.interaction_id, (None, None))
        if card is None:  # denied at once, without a request
            card = self._create(
                ApprovalCard, event, interaction_id=event.interaction_id, action="permission request", detail=""
            )
            call = self._scope(event).calls.only_running()
            card.tool_call_id = None if call is None else call.tool_call_id
        card.state, card.reason = "denied", event.reason
        if call is not None:  # it may have ended: an abort closes the call before the request
            call.decision, call.denial_reason = "denied", event.reason
            if call.state != "succeeded":
                call.state = "denied"
        return [self._close(card, event), *_present(call)]

    def _asked(self, event: ev.InputRequiredEvent) -> list[AnyCard]:
        self._question = self._create(
            QuestionCard,
            event,
            interaction_id=event.interaction_id,
            question=bounded(event.question),
            context=None if event.context is None else bounded(event.context),
        )
        return [self._question]

    # -- everything else

    def _costs(self, event: ev.CostEvent) -> list[AnyCard]:
        if self._cost is None:
            self._cost = self._create(CostCard, event, cost=event.cost)
        self._cost.cost = event.cost
        return [self._cost]

    def _notice(self, event: BaseEvent) -> list[AnyCard]:
        return [self._close(self._create(NoticeCard, event, event=event), event)]

    def _error(self, event: Any) -> list[AnyCard]:
        card = self._create(
            ErrorCard,
            event,
            code=getattr(event, "code", event.type),
            message=bounded(_error_message(event)),
            guidance=getattr(event, "guidance", None) or None,
            recoverable=getattr(event, "recoverable", False),
        )
        return [self._close(card, event)]

    def _session_ended(self, event: ev.SessionEndEvent) -> list[AnyCard]:
        cards: Iterable[AnyCard | None] = (self._cost, self.status)
        return [self._close(card, event) for card in cards if card is not None]


def _present(card: ToolCard | None) -> list[AnyCard]:
    return [] if card is None else [card]


_ENDINGS = {
    "aborted": "the run was aborted",
    "interrupted": "the run was interrupted",
    "context_exceeded": "the context window is full",
}


def _error_message(event: Any) -> str:
    match event:
        case ev.CrashEvent():
            return event.stderr or f"the agent ended with exit code {event.exit_code}"
        case ev.TimeoutEvent():
            return f"the {'time' if event.kind == 'run' else 'inactivity'} limit was reached"
        case ev.TurnLimitEvent():
            limit = f"{event.max_turns} " if event.max_turns else ""
            return f"the limit of {limit}model calls was reached"
    return _ENDINGS.get(event.type) or str(event.message)


# ruff: noqa: SLF001  # the table is part of the class, below it for the names of its methods
_HANDLERS: dict[str, Callable[[Timeline, Any], list[AnyCard]]] = {
    "message_start": Timeline._message_started,
    "text_delta": Timeline._text,
    "message_stop": Timeline._message_stopped,
    "thinking_start": Timeline._thinking_started,
    "thinking_delta": Timeline._thinking,
    "thinking_stop": Timeline._thinking_stopped,
    "tool_call_start": Timeline._call_started,
    "tool_input_delta": Timeline._input,
    "tool_call_ready": Timeline._call_ready,
    "tool_result": Timeline._call_succeeded,
    "tool_error": Timeline._call_failed,
    "mcp_tool_call_start": Timeline._mcp_started,
    "mcp_tool_result": Timeline._call_succeeded,
    "mcp_tool_error": Timeline._call_failed,
    "shell_start": Timeline._shell_started,
    "shell_stdout_delta": Timeline._shell_output,
    "shell_stderr_delta": Timeline._shell_output,
    "shell_exit": Timeline._shell_ended,
    **dict.fromkeys(("file_read", "file_write", "file_create", "file_delete", "file_patch"), Timeline._file),
    "subagent_spawn": Timeline._subagent_spawned,
    "subagent_result": Timeline._subagent_ended,
    "subagent_error": Timeline._subagent_ended,
    "approval_request": Timeline._approval_requested,
    "approval_granted": Timeline._approval_granted,
    "approval_denied": Timeline._approval_denied,
    "input_required": Timeline._asked,
    "cost": Timeline._costs,
    "session_end": Timeline._session_ended,
    **dict.fromkeys(
        ("error", "crash", "auth_error", "rate_limit_error", "context_exceeded", "timeout", "turn_limit", "aborted",
         "interrupted"),
        Timeline._error,
    ),
    **dict.fromkeys(
        ("session_start", "turn_start", "rate_limited", "context_limit_warning", "context_compacted", "retry", "paused",
         "resumed", "plugin_error", "skill_invoked", "image_output", "stream_fallback", "debug", "log"),
        Timeline._notice,
    ),
}  # fmt: skip
"""What each event does. Events that are not named change at most the status card."""

_AFTER_ANSWER = frozenset({
    "message_start", "thinking_start", "tool_call_start", "mcp_tool_call_start", "tool_call_ready", "tool_result",
    "tool_error", "mcp_tool_result", "mcp_tool_error", "step_start", "step_end", "turn_end", "session_end",
    "subagent_spawn",
})  # fmt: skip
"""Events that show that the agent continues after a question."""


def cards_of(events: Iterable[BaseEvent], *, max_cards: int = MAX_CARDS) -> Timeline:
    """Return the timeline of a finished run, or of its events so far."""
    timeline = Timeline(max_cards=max_cards)
    for event in events:
        timeline.feed(event)
    return timeline
