"""The session events: which come when, and that all name one session. Sections 5 and 23."""

from agent_mux.contract.breach import Report
from agent_mux.events.base import BaseEvent
from agent_mux.events.session import (
    SessionCheckpointEvent,
    SessionEndEvent,
    SessionForkEvent,
    SessionResumeEvent,
    SessionStartEvent,
)

_Named = SessionResumeEvent | SessionForkEvent | SessionCheckpointEvent | SessionEndEvent


class Session:
    """What `session_start` said, and whether the stream is still right behind it."""

    def __init__(self) -> None:
        self._start: SessionStartEvent | None = None
        self._before: type[BaseEvent] | None = None
        """The class of the domain event before this one."""
        self._prior_turns = 0

    def see(self, event: BaseEvent, turns: int, report: Report) -> None:
        """Check one domain event. `turns`: how many ended in this run."""
        start = self._start
        if isinstance(event, SessionStartEvent):
            self._started(event, report)
        elif isinstance(event, _Named) and start is not None:
            if event.session_id != start.session_id:
                report("23", f"session {event.session_id!r} in a run of session {start.session_id!r}")
            match event:
                case SessionResumeEvent():
                    self._resumed(event, start, report)
                case SessionForkEvent():
                    self._forked(event, start, report)
                case SessionEndEvent() if event.turn_count < self._prior_turns + turns:
                    report("5.5", f"turnCount {event.turn_count} after {self._prior_turns} + {turns} turns")
        self._before = type(event)

    def _started(self, event: SessionStartEvent, report: Report) -> None:
        if self._start is not None:
            report("5.1", "a second session_start")
        else:
            self._start = event

    def _resumed(self, event: SessionResumeEvent, start: SessionStartEvent, report: Report) -> None:
        if not start.resumed:
            report("5.2", "session_start does not say resumed")
        if self._before is not SessionStartEvent:
            report("5.2", "it is not right after session_start")
        self._prior_turns = event.prior_turn_count

    def _forked(self, event: SessionForkEvent, start: SessionStartEvent, report: Report) -> None:
        if event.forked_from != start.forked_from:
            report("5.3", f"session_start says forked from {start.forked_from!r}, not {event.forked_from!r}")
        if self._before not in (SessionStartEvent, SessionResumeEvent):
            report("5.3", "it is not right after session_start or session_resume")
