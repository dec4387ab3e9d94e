"""The session events: which come when, and that all name one session. Sections 5 and 23.

Turns and steps: numbered, nested, never overlapping. Sections 6 and 25.2.


Approvals and questions: asked once, decided once. Sections 18 and 25.4.

`approval_denied` may stand alone: in `deny` mode nothing is asked (18.2). That the run waits (25.4.2) and that the
approved tool runs afterwards (25.4.3) cannot be seen in the stream: an approval names no tool call.
"""

from agent_mux.contract.breach import Opened, Report
from agent_mux.events.base import BaseEvent
from agent_mux.events.run import ApprovalDeniedEvent, ApprovalGrantedEvent, ApprovalRequestEvent, InputRequiredEvent
from agent_mux.events.session import (
    SessionCheckpointEvent,
    SessionEndEvent,
    SessionForkEvent,
    SessionResumeEvent,
    SessionStartEvent,
    StepEndEvent,
    StepStartEvent,
    TurnEndEvent,
    TurnStartEvent,
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


class Turns:
    """The turn and the step that are open."""

    def __init__(self) -> None:
        self.turn: int | None = None
        """Index of the open turn."""
        self.started = 0
        """Turns begun so far."""
        self.ended = 0
        self._step: int | None = None
        self._next_step = 0

    def see(self, event: BaseEvent, report: Report) -> None:
        """Check one event; those of other families say nothing here."""
        match event:
            case TurnStartEvent():
                self._start(event.turn_index, report)
            case TurnEndEvent():
                self._end(event.turn_index, report)
            case StepStartEvent():
                self._start_step(event, report)
            case StepEndEvent():
                self._end_step(event, report)

    def opened_turn(self) -> Opened:
        """The open turn."""
        if self.turn is not None:
            yield "25.2.1", f"turn {self.turn}"

    def opened_step(self) -> Opened:
        """The open step."""
        if self._step is not None:
            yield "6.5", f"step {self._step}"

    def _start(self, index: int, report: Report) -> None:
        if self.turn is not None:
            report("25.2.2", f"turn {index} starts while turn {self.turn} is open")
        if index != self.started:
            report("6.1", f"turn {index} comes where turn {self.started} is due")
        self.started = max(self.started, index) + 1
        self.turn, self._step, self._next_step = index, None, 0

    def _end(self, index: int, report: Report) -> None:
        if self.turn is None:
            report("25.2.1", f"turn {index} ends and none is open")
        elif index != self.turn:
            report("25.2.1", f"turn {index} ends while turn {self.turn} is open")
        self.ended += self.turn is not None
        self.turn = self._step = None

    def _start_step(self, event: StepStartEvent, report: Report) -> None:
        self._in_its_turn(event, report)
        if self._step is not None:
            report("6.5", f"step {event.step_index} starts while step {self._step} is open")
        if event.step_index != self._next_step:
            report("6.5", f"step {event.step_index} comes where step {self._next_step} is due")
        self._step = event.step_index
        self._next_step = event.step_index + 1

    def _end_step(self, event: StepEndEvent, report: Report) -> None:
        self._in_its_turn(event, report)
        if self._step is None:
            report("6.5", f"step {event.step_index} ends and none is open")
        elif event.step_index != self._step:
            report("6.5", f"step {event.step_index} ends while step {self._step} is open")
        self._step = None

    def _in_its_turn(self, event: StepStartEvent | StepEndEvent, report: Report) -> None:
        if self.turn is None:
            report("25.2.4", "a step outside a turn")
        elif event.turn_index != self.turn:
            report("25.2.4", f"a step of turn {event.turn_index} inside turn {self.turn}")


class Interactions:
    """The approvals that are not decided yet, of the main agent and its sub-agents."""

    def __init__(self) -> None:
        self._used: set[str] = set()
        self._open: dict[str, str | None] = {}
        """Interaction id -> the sub-agent that asks."""

    def see(self, event: BaseEvent, report: Report) -> None:
        """Check one event; those of other families say nothing here."""
        match event:
            case InputRequiredEvent():
                self._use(event.interaction_id, report)
            case ApprovalRequestEvent():
                self._use(event.interaction_id, report)
                self._open[event.interaction_id] = event.subagent_id
            case ApprovalGrantedEvent() | ApprovalDeniedEvent():
                self._decide(event, report)

    def opened(self) -> Opened:
        """What is open."""
        for interaction_id in self._open:
            yield "18.2", f"approval {interaction_id!r}"

    def opened_by(self, subagent_id: str | None) -> Opened:
        """What is open and asked by one agent; None: by the main one."""
        for interaction_id, asking in self._open.items():
            if asking == subagent_id:
                yield "18.2", f"approval {interaction_id!r}"

    def forget(self, subagent_id: str | None) -> None:
        """What this agent asked is over, decided or not."""
        self._open = {key: asking for key, asking in self._open.items() if asking != subagent_id}

    def _use(self, interaction_id: str, report: Report) -> None:
        if interaction_id in self._used:
            report("18.1", f"interaction id {interaction_id!r} was used before")
        self._used.add(interaction_id)

    def _decide(self, event: ApprovalGrantedEvent | ApprovalDeniedEvent, report: Report) -> None:
        interaction_id = event.interaction_id
        if interaction_id in self._open:
            del self._open[interaction_id]
        elif interaction_id in self._used:
            report("18.2", f"approval {interaction_id!r} is decided twice, or was a question")
        elif isinstance(event, ApprovalGrantedEvent):
            report("25.4.1", f"approval {interaction_id!r} is granted and was not requested")
        else:
            self._used.add(interaction_id)
