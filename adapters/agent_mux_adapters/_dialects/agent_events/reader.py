"""Events to facts: the inverse of the assembler. What it cannot give back, the page of the protocol lists."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from agent_mux import facts
from agent_mux.events import AgentEvent, interaction, session
from agent_mux_adapters._dialects.agent_events.content import EventContent, Facts
from agent_mux_adapters._dialects.agent_events.notices import NOTICES
from agent_mux_adapters._dialects.agent_events.order import EventOrder
from agent_mux_adapters._dialects.agent_events.outcome import AgentEventsOutcome
from agent_mux_adapters._dialects.agent_events.wire import event_of, fragment_of
from agent_mux_adapters._dialects.tolerant import text, whole

_OF_A_MUX = re.compile(r"transient-[0-7][0-9A-HJKMNP-TV-Z]{25}")
_FAST = {"text_delta": "message", "thinking_delta": "thought"}


class AgentEventsReader:
    """Reads one run."""

    def __init__(self) -> None:
        self._order = EventOrder()
        self._main = EventContent()
        self._inside: dict[str, EventContent] = {}
        self._holding: EventContent | None = None
        self._turns = AgentEventsOutcome()
        self._asked: set[str] = set()
        """Approvals that were asked for."""
        self._approvals: Mapping[type, Callable[[Any, Mapping[str, Any]], Facts]] = {
            interaction.ApprovalRequestEvent: self._request,
            interaction.ApprovalDeniedEvent: self._denied,
        }
        self._opening: tuple[session.SessionStartEvent, str | None] | None = None
        """A resumed session: the next line says how many turns it had."""

    def fragment(self, line: bytes) -> Facts | None:
        """The hot path: a fragment of the message, or of the thought, that is open. None: look at it closely."""
        if self._holding is not None or self._opening is not None:
            return None
        read = fragment_of(line)
        if read is None or read.subagent is not None:
            return None
        kind = _FAST.get(read.type)
        if kind is None or not self._order.goes_on(kind):
            return None
        return self._main.say(read.delta) if kind == "message" else self._main.think(read.delta)

    def told(self, native: Mapping[str, Any]) -> Facts | None:
        """What a line says; None when it is no event that we know."""
        event = event_of(native)
        if event is None:
            return None
        wrong = self._order.see(event)
        released = self.release(event)
        read = self._read(event, native)
        return *released, *wrong, *(read or _nothing(event))

    def release(self, following: AgentEvent | None = None) -> Facts:
        """What was held back; `following` is the next event, None at the end."""
        told: Facts = ()
        if self._holding is not None:
            content, self._holding = self._holding, None
            told = content.release(following)
            told = self._wrapped(content, told)
        if self._opening is not None and not isinstance(following, session.SessionResumeEvent):
            told = *self._opened(0), *told
        return told

    def _read(self, event: AgentEvent, native: Mapping[str, Any]) -> Facts:
        kind = event.__class__
        if kind in self._main.handlers:
            content = self._content_of(event.subagent_id)
            read = content.handlers[kind](event)
            if content.held is not None:
                self._holding = content
            elif content is self._main:
                self._turns.goes_on()
            return self._wrapped(content, read)
        if isinstance(event, session.SessionStartEvent):
            return self._session_start(event, text(native.get("model")) or None, whole(native.get("priorTurns")))
        if isinstance(event, session.SessionResumeEvent):
            return self._opened(event.prior_turn_count)
        known = self._turns.handlers.get(kind) or self._approvals.get(kind)
        return known(event, native) if known is not None else NOTICES[kind](event, native)

    # -- approvals

    def _request(self, event: interaction.ApprovalRequestEvent, native: Mapping[str, Any]) -> Facts:
        self._asked.add(event.interaction_id)
        return NOTICES[event.__class__](event, native)

    def _denied(self, event: interaction.ApprovalDeniedEvent, native: Mapping[str, Any]) -> Facts:
        denied = NOTICES[event.__class__](event, native)
        if event.interaction_id in self._asked:
            return denied
        # A program that denies everything does not say what it denies; the assembler wants to have been asked.
        return facts.ApprovalAsked(event.interaction_id, "something", "the program does not say what", "high"), *denied

    # -- the session

    def _session_start(self, event: session.SessionStartEvent, model: str | None, prior_turns: int) -> Facts:
        if _OF_A_MUX.fullmatch(event.session_id):  # there is no session: this mux says so with the id of its own run
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

    def _wrapped(self, content: EventContent, told: Facts) -> Facts:
        if content is self._main:
            return told
        subagent_id = next(name for name, inside in self._inside.items() if inside is content)
        return tuple(facts.InSubagent(subagent_id, fact) for fact in told)


def _nothing(event: AgentEvent) -> Facts:
    return (facts.Ignored(event.type, "said by what comes before or after it, or by the mux itself"),)
