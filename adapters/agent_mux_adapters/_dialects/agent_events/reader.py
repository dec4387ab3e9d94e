"""Events to facts, the inverse of the assembler.

The page of the protocol lists what cannot be restored.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

from agent_mux.events import AgentEvent
from agent_mux.events.run import ApprovalDeniedEvent, ApprovalRequestEvent
from agent_mux.events.session import SessionResumeEvent, SessionStartEvent
from agent_mux.sdk import facts
from agent_mux_adapters._dialects.agent_events.content import EventContent, Facts
from agent_mux_adapters._dialects.agent_events.notices import NOTICES
from agent_mux_adapters._dialects.agent_events.order import EventOrder
from agent_mux_adapters._dialects.agent_events.outcome import AgentEventsOutcome
from agent_mux_adapters._dialects.agent_events.wire import event_of, fragment_of
from agent_mux_adapters._dialects.tolerant import text, whole

_TRANSIENT_SESSION = re.compile(r"transient-[0-7][0-9A-HJKMNP-TV-Z]{25}")
_FAST = {"text_delta": "message", "thinking_delta": "thought"}


class AgentEventsReader:
    """Reads the events of one run."""

    def __init__(self) -> None:
        self._order = EventOrder()
        self._main = EventContent()
        self._inside: dict[str, EventContent] = {}
        self._holding: EventContent | None = None
        self._outcome = AgentEventsOutcome()
        self._asked: set[str] = set()
        """The ids of the requested approvals."""
        self._approvals: Mapping[type, Callable[[Any, Mapping[str, Any]], Facts]] = {
            ApprovalRequestEvent: self._request,
            ApprovalDeniedEvent: self._denied,
        }
        self._opening: tuple[SessionStartEvent, str | None] | None = None
        """The start of a resumed session, held until the next event shows the number of its turns."""

    def fragment(self, line: bytes) -> Facts | None:
        """Return the fact of a fragment of the open message or thought (hot path); None for any other line."""
        if self._holding is not None or self._opening is not None:
            return None
        read = fragment_of(line)
        if read is None or read.subagent is not None:
            return None
        kind = _FAST.get(read.type)
        if kind is None or not self._order.is_open(kind):
            return None
        return self._main.message_fragment(read.delta) if kind == "message" else self._main.thought_fragment(read.delta)

    def read_line(self, native: Mapping[str, Any]) -> Facts | None:
        """Return the facts of a line; None when it is not a known event."""
        event = event_of(native)
        if event is None:
            return None
        warnings = self._order.violations(event)
        released = self.release(event)
        read = self._read(event, native)
        return *released, *warnings, *(read or _nothing(event))

    def release(self, following: AgentEvent | None = None) -> Facts:
        """Return what was held back. `following` is the next event, None at the end."""
        facts_read: Facts = ()
        if self._holding is not None:
            content, self._holding = self._holding, None
            facts_read = content.release(following)
            facts_read = self._wrapped(content, facts_read)
        if self._opening is not None and not isinstance(following, SessionResumeEvent):
            facts_read = *self._opened(0), *facts_read
        return facts_read

    def _read(self, event: AgentEvent, native: Mapping[str, Any]) -> Facts:
        kind = event.__class__
        if kind in self._main.handlers:
            content = self._content_of(event.subagent_id)
            read = content.handlers[kind](event)
            if content.held is not None:
                self._holding = content
            elif content is self._main:
                self._outcome.note_activity()
            return self._wrapped(content, read)
        if isinstance(event, SessionStartEvent):
            return self._session_start(event, text(native.get("model")) or None, whole(native.get("priorTurns")))
        if isinstance(event, SessionResumeEvent):
            return self._opened(event.prior_turn_count)
        known = self._outcome.handlers.get(kind) or self._approvals.get(kind)
        return known(event, native) if known is not None else NOTICES[kind](event, native)

    # -- approvals

    def _request(self, event: ApprovalRequestEvent, native: Mapping[str, Any]) -> Facts:
        self._asked.add(event.interaction_id)
        return NOTICES[event.__class__](event, native)

    def _denied(self, event: ApprovalDeniedEvent, native: Mapping[str, Any]) -> Facts:
        denied = NOTICES[event.__class__](event, native)
        if event.interaction_id in self._asked:
            return denied
        # A program that denies every request reports no request; the assembler needs one before the denial.
        action = text(native.get("action")) or "something"
        detail = text(native.get("detail")) or "the program does not report the action"
        tool = text(native.get("toolName")) or None
        return facts.ApprovalRequested(event.interaction_id, action, detail, "high", tool), *denied

    # -- the session

    def _session_start(self, event: SessionStartEvent, model: str | None, prior_turns: int) -> Facts:
        # Without a session, agent-mux reports the id of its own run.
        if _TRANSIENT_SESSION.fullmatch(event.session_id):
            return (facts.SessionKnown("", model=model),) if model else ()
        self._opening = event, model
        return () if event.resumed else self._opened(prior_turns)

    def _opened(self, prior_turns: int) -> Facts:
        opening, self._opening = self._opening, None
        if opening is None:
            return ()
        event, model = opening
        return (facts.SessionKnown(event.session_id, event.resumed, event.forked_from, prior_turns, model),)

    # -- sub-agents

    def _content_of(self, subagent_id: str | None) -> EventContent:
        if subagent_id is None:
            return self._main
        return self._inside.setdefault(subagent_id, EventContent())

    def _wrapped(self, content: EventContent, facts_read: Facts) -> Facts:
        if content is self._main:
            return facts_read
        subagent_id = next(name for name, inside in self._inside.items() if inside is content)
        return tuple(facts.InSubagent(subagent_id, fact) for fact in facts_read)


def _nothing(event: AgentEvent) -> Facts:
    return (facts.Ignored(event.type, "covered by neighbouring events or by agent-mux itself"),)
